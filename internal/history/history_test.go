package history

import (
	"strings"
	"testing"
	"time"
)

// The judge of histories detects violations, and those only.
func TestJudgeOfHistories(t *testing.T) {
	write := func(id, before string, began, ended time.Duration, o outcome) call {
		c := call{wrote: true, write: id, before: before, began: began, ended: ended, outcome: o}
		if o == made {
			c.version = "version of " + id
		}
		return c
	}
	read := func(id string, began, ended time.Duration) call {
		return call{write: id, version: "version of " + id, began: began, ended: ended,
			outcome: made}
	}
	a, b := write("a", "", 0, 1, made), write("b", "a", 2, 3, made)
	for name, c := range map[string]struct {
		calls []call
		last  string
		want  string
	}{
		"no call":                    {nil, "", ""},
		"one after the other":        {[]call{a, read("a", 1, 2), b, read("b", 4, 5)}, "b", ""},
		"a read while it is written": {[]call{a, b, read("a", 2, 4)}, "b", ""},
		"an answer that is lost": {[]call{a, write("b", "a", 2, 3, unknown), read("b", 4, 5)},
			"b", ""},
		"a request that is lost": {[]call{a, write("b", "a", 2, 3, unknown), read("a", 4, 5)},
			"a", ""},
		"a late request": {[]call{a, write("b", "a", 2, 3, unknown), read("a", 4, 5),
			read("b", 6, 7)}, "b", ""},
		"a refused one": {[]call{a, b, write("c", "a", 4, 5, refused)}, "b", ""},
		"a swallowed error": {[]call{a, b}, "a",
			`"b" of  (0.000 to 0.000 s) was acknowledged`},
		"two on one condition": {[]call{a, b, write("c", "a", 2, 3, made)}, "c",
			"was acknowledged, and is not among"},
		"all is forgotten": {[]call{a}, "", "was acknowledged, and is not among"},
		"a stale read":     {[]call{a, b, read("a", 4, 5)}, "b", "is older than"},
		"a stale read after a read": {[]call{a, write("b", "a", 2, 9, made), read("b", 3, 4),
			read("a", 5, 6)}, "b", "is older than"},
		"nothing after a write": {[]call{a, {began: 2, ended: 3, outcome: made}}, "a",
			"is older than"},
		"a refused write is stored": {[]call{a, write("b", "a", 2, 3, refused)}, "b",
			"refused, but stored"},
		"a dirty read": {[]call{a, write("b", "a", 2, 3, unknown), read("b", 4, 5)},
			"a", "a read returned"},
		"data that nobody wrote": {[]call{a}, "x", "which nobody wrote"},
		"a version of two writes": {[]call{a,
			{write: "b", version: "version of a", wrote: true, before: "a", outcome: made}}, "b",
			"the same version"},
		"two versions of one write": {[]call{a,
			{write: "a", version: "another", began: 2, ended: 3, outcome: made}}, "a",
			"has the versions"},
		"a call that has no answer":   {[]call{a, {began: 2, ended: 3, outcome: unknown}}, "a", ""},
		"calls of which one is later": {[]call{b, read("b", 4, 5), a}, "b", ""},
	} {
		err := judgeObject(c.calls, c.last)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
