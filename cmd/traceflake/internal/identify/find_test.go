package identify

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

var placeholders = strings.NewReplacer("TRACE", "4bf92f3577b34da6a3ce929d0e0e4736",
	"SPAN", "00f067aa0ba902b7", "PARENT", "05e3ac9a4f6e3b90")

// Each line in the files of testdata has the IDs that follow its arrow.
func TestFind(t *testing.T) {
	for _, file := range []string{"forms", "reports", "real"} {
		text, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		lines, right := 0, 0
		for line := range strings.Lines(placeholders.Replace(string(text))) {
			line, want, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " → ")
			if !ok {
				continue // a comment
			}
			lines++
			found, err := find(line)
			var ids []string
			for _, w := range found {
				ids = append(ids, strings.TrimSpace(w.role+" "+w.text))
			}
			got := strings.Join(ids, ", ")
			if err != nil {
				got = fmt.Sprint("none: ", err)
			}
			if got == want || err != nil && strings.Contains(got, want) {
				right++
			} else {
				t.Errorf("%q:\ngot  %s\nwant %s", line, got, want)
			}
		}
		t.Logf("%s: %d of %d lines are read right", file, right, lines)
	}
}
