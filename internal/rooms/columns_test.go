package rooms

import (
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// The linter measures lines of Go; this test measures SQL and Markdown.
const (
	columns  = 100
	tabWidth = 4
)

// measured reports whether a file's lines have a limit. Programs write the pages of figures, and
// copied queries keep their form.
func measured(name string) bool {
	base := path.Base(name)
	return base != "tools.sql" && strings.HasSuffix(base, ".sql") ||
		strings.HasSuffix(base, ".md") &&
			!slices.Contains([]string{"RESULTS.md", "CPU.md", "SCALE.md"}, base)
}

// long returns the numbers of the lines that are too long. A row of a table cannot be wrapped.
func long(text string) (numbers []int) {
	for i, line := range strings.Split(text, "\n") {
		line = strings.ReplaceAll(line, "\t", strings.Repeat(" ", tabWidth))
		if utf8.RuneCountInString(line) > columns && !strings.HasPrefix(line, "|") {
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

func TestColumns(t *testing.T) {
	found := 0
	err := walk(tree(t), func(name string, text []byte) error {
		if !measured(name) {
			return nil
		}
		found++
		if lines := long(string(text)); len(lines) > 0 {
			t.Errorf("%s: over %d columns: lines %v", name, columns, lines)
		}
		return nil
	})
	if err != nil || found == 0 {
		t.Fatalf("%d files: %v", found, err)
	}
}

// TestColumnsAreMeasured plants lines that are too long.
func TestColumnsAreMeasured(t *testing.T) {
	fits := strings.Repeat("ä", columns)
	text := fits + "\n" + fits + "a\n| " + fits + " |\n\t" + fits[2*tabWidth:] + "\n\ta" +
		fits[2*tabWidth:]
	if got := long(text); !slices.Equal(got, []int{2, 5}) {
		t.Errorf("lines %v are too long, want 2 and 5 of\n%s", got, text)
	}
	for name, want := range map[string]bool{
		"clickhouse/sql/adopt/same.sql": true, "docs/faq.md": true, "README.md": true,
		"integration/clickhouse/testdata/tools.sql": false, "bench/RESULTS.md": false, "a.go": false,
	} {
		if measured(name) != want {
			t.Errorf("%s is measured: %t, want %t", name, !want, want)
		}
	}
}
