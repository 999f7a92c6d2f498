package rooms

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

// floorOf returns the part of the repository that a room for users belongs to.
func floorOf(room string) string {
	switch top, _, _ := strings.Cut(room, "/"); top {
	case "lease":
		return "leases"
	case "clickhouse":
		return "storage"
	case "contrib":
		return "contrib"
	}
	return "IDs"
}

// picture draws the table by floors: an arrow leads from each room for users to those that it
// imports. What another arrow already leads to in two steps is left out.
func (all imports) picture() string {
	arrows := make(map[string][]string)
	floors := make(map[string]string)
	for _, room := range slices.Sorted(maps.Keys(all)) {
		if drawn(room) {
			floors[floorOf(room)] += "    " + room + "\n"
		}
		for _, word := range all[room] {
			_, ours := all[word]
			if ours && drawn(room) && drawn(word) && word != room {
				arrows[room] = append(arrows[room], word)
			}
		}
	}
	var b strings.Builder
	b.WriteString("```mermaid\nflowchart TD\n")
	for _, floor := range slices.Sorted(maps.Keys(floors)) {
		fmt.Fprintf(&b, "  subgraph %s\n%s  end\n", floor, floors[floor])
	}
	for _, room := range slices.Sorted(maps.Keys(arrows)) {
		for _, to := range arrows[room] {
			indirect := slices.ContainsFunc(arrows[room], func(via string) bool {
				return slices.Contains(arrows[via], to)
			})
			if !indirect {
				fmt.Fprintf(&b, "  %s --> %s\n", room, to)
			}
		}
	}
	b.WriteString("```\n")
	return b.String()
}

// drawn reports whether a room is in the picture: a package for users.
func drawn(room string) bool {
	return !strings.Contains(room, "internal/") && !strings.Contains(room, "...") &&
		!strings.HasPrefix(room, "tests of") && !strings.Contains(room, "/_") &&
		room != strings.ToUpper(room)
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
