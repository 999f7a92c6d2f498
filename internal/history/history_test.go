package history

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// The judge detects violations, and those only.
func TestJudge(t *testing.T) {
	write := func(data string, began, ended time.Duration, o outcome) call {
		return call{wrote: true, data: data, began: began, ended: ended, outcome: o}
	}
	read := func(data string, began time.Duration) call {
		return call{data: data, began: began, ended: began + 1, outcome: made}
	}
	const forgotten, older = "was acknowledged, and is not among", "is older than"
	a, ab := write("a", 0, 1, made), write("ab", 2, 3, made)
	lost := write("ab", 2, 3, unknown)
	for name, c := range map[string]struct {
		calls []call
		last  string
		want  string
	}{
		"no call":                    {nil, "", ""},
		"one after the other":        {[]call{a, read("a", 1), ab, read("ab", 4)}, "ab", ""},
		"a read while it is written": {[]call{a, ab, read("a", 2)}, "ab", ""},
		"a response that is lost":    {[]call{a, lost, read("ab", 4)}, "ab", ""},
		"a request that is lost":     {[]call{a, lost, read("a", 4)}, "a", ""},
		"a late request":             {[]call{a, lost, read("a", 4), read("ab", 6)}, "ab", ""},
		"a refused one":              {[]call{a, ab, write("ac", 4, 5, refused)}, "ab", ""},
		"a swallowed error":          {[]call{a, ab}, "a", forgotten},
		"two on one condition":       {[]call{a, ab, write("ac", 2, 3, made)}, "ac", forgotten},
		"all is forgotten":           {[]call{a}, "", forgotten},
		"a stale read":               {[]call{a, ab, read("a", 4)}, "ab", older},
		"a stale read after a read": {[]call{a, write("ab", 2, 9, made), read("ab", 3),
			read("a", 5)}, "ab", older},
		"nothing after a write":     {[]call{a, read("", 2)}, "a", older},
		"a refused write is stored": {[]call{a, write("ab", 2, 3, refused)}, "ab", "but stored"},
		"a dirty read":              {[]call{a, lost, read("ab", 4)}, "a", "a read returned"},
	} {
		if err := fmt.Sprint(judge(c.calls, c.last)); !strings.Contains(err, c.want) ||
			(c.want == "") != (err == "<nil>") {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
