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

// Ordinary lines of logs are decided without the expressions, which are slower.
func TestMayContain(t *testing.T) {
	for _, line := range []string{
		"2026-11-05T18:54:51.782Z INFO 1 --- [nio-exec-7] o.s.b.OrderedRequestContextFilter : x",
		`10.0.1.2 - - [22/Mar/2026:08:50:45 +0100] "GET /a?id=12345 HTTP/1.1" 200 30 "-" ` +
			`"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0"`,
		`{"level":"info","ts":"2026-11-05T18:54:51.782Z","caller":"cart/add.go:5","ms":12.345}`,
		"\tat com.example.shop.CartService.add(CartService.java:42)",
		"Nov 20 12:30:45 host-17 systemd[1]: Started Session 4711 of user root.", "b3: 0",
	} {
		if mayContain(line) {
			t.Errorf("%q", line)
		}
	}
}
