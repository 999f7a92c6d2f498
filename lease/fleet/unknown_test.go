package fleet

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// docs/configuration.md lists every variable that is known, and no other.
func TestPageListsEveryVariable(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var page []string
	row := regexp.MustCompile("(?m)^- `(TRACEFLAKE_[A-Z_]+)`")
	for _, m := range row.FindAllSubmatch(text, -1) {
		page = append(page, string(m[1]))
	}
	slices.Sort(page)
	if !slices.Equal(page, known) {
		t.Errorf("the page lists\n%q\nthe code knows\n%q", page, known)
	}
}
