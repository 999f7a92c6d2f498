package repocheck

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "draw the picture in ARCHITECTURE.md anew")

var fenced = regexp.MustCompile("(?s)```mermaid\n.*?```\n")

// floorOf returns the part of the repository that a package for users belongs to.
func floorOf(folder string) string {
	switch top, _, _ := strings.Cut(folder, "/"); top {
	case "lease":
		return "leases"
	case "clickhouse":
		return "storage"
	case "contrib":
		return "contrib"
	}
	return "IDs"
}

// picture draws the table by floors: an arrow leads from each package for users to those that
// it imports. What another arrow already leads to in two steps is left out.
func (all imports) picture() string {
	arrows := make(map[string][]string)
	floors := make(map[string]string)
	for _, folder := range slices.Sorted(maps.Keys(all)) {
		if drawn(folder) {
			floors[floorOf(folder)] += "    " + folder + "\n"
		}
		for _, word := range all[folder] {
			_, ours := all[word]
			if ours && drawn(folder) && drawn(word) && word != folder {
				arrows[folder] = append(arrows[folder], word)
			}
		}
	}
	var b strings.Builder
	b.WriteString("```mermaid\nflowchart TD\n")
	for _, floor := range slices.Sorted(maps.Keys(floors)) {
		fmt.Fprintf(&b, "  subgraph %s\n%s  end\n", floor, floors[floor])
	}
	for _, folder := range slices.Sorted(maps.Keys(arrows)) {
		for _, to := range arrows[folder] {
			indirect := slices.ContainsFunc(arrows[folder], func(via string) bool {
				return slices.Contains(arrows[via], to)
			})
			if !indirect {
				fmt.Fprintf(&b, "  %s --> %s\n", folder, to)
			}
		}
	}
	b.WriteString("```\n")
	return b.String()
}

// drawn reports whether a folder is in the picture: a package for users.
func drawn(folder string) bool {
	return !strings.Contains(folder, "internal/") && !strings.Contains(folder, "...") &&
		!strings.HasPrefix(folder, "tests of") && !strings.Contains(folder, "/_") &&
		folder != strings.ToUpper(folder)
}

// TestPicture: the picture in ARCHITECTURE.md is that of the table.
func TestPicture(t *testing.T) {
	tree(t) // or the test is skipped
	const page = "../../ARCHITECTURE.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := fenced.ReplaceAllLiteralString(string(text), parseTable(table).picture())
	if *update {
		err = os.WriteFile(page, []byte(want), 0o600)
	}
	if err != nil || !fenced.Match(text) || !*update && want != string(text) {
		t.Errorf("the picture is not that of imports.txt: run make generate (%v)", err)
	}
}
