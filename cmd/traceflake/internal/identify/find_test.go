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
			var got []string
			for _, w := range found {
				got = append(got, strings.TrimSpace(w.role+" "+w.text))
			}
			all := strings.Join(got, ", ")
			if err != nil {
				all = fmt.Sprint("none: ", err)
			}
			if all != want && !(err != nil && strings.HasPrefix(all, want)) &&
				!(err != nil && strings.Contains(err.Error(), want)) {
				t.Errorf("%q:\ngot  %s\nwant %s", line, all, want)
			} else {
				right++
			}
		}
		t.Logf("%s: %d of %d lines are read right", file, right, lines)
	}
}
