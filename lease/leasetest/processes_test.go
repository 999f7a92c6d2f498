//go:build unix

package leasetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// The judge of processes detects violations.
func TestJudgeOfProcesses(t *testing.T) {
	const start = 1_800_000_000 // 2027-01-15T08:00:00Z
	const begun = `{"Node":8,"Nodes":8,"Start":"2027-01-15T08:00:00Z",`
	const grant = begun + `"End":"2027-01-15T08:01:00Z"}`
	const longer = begun + `"End":"2027-01-15T08:01:30Z"}`
	const released = begun + `"End":"2027-01-15T08:00:30Z","Released":true}`
	for _, c := range []struct {
		name   string
		grants [2]string // grants of two lives
		second int64     // second of an ID of the first life, node 9
		say    string
	}{
		{"all is well", [2]string{grant, strings.ReplaceAll(grant, `"Node":8`, `"Node":16`)},
			start + 59, ""},
		{"in a renewal", [2]string{grant + "\n" + longer, ""}, start + 89, ""},
		{"cut off", [2]string{grant + "\n" + longer[:20], ""}, start + 60, "not granted"},
		{"past the end", [2]string{grant, ""}, start + 60, "not granted"},
		{"returned", [2]string{grant + "\n" + released, ""}, start + 30, "not granted"},
		{"another's", [2]string{"", grant}, start, "not granted"},
		{"overlap", [2]string{grant, grant}, start, "overlap"},
		{"overlap by a second",
			[2]string{grant, strings.ReplaceAll(longer, "08:00:00", "08:00:59")}, start, "overlap"},
		{"one after the other",
			[2]string{grant, strings.ReplaceAll(longer, "08:00:00", "08:01:00")}, start, ""},
	} {
		dir := t.TempDir()
		v := judged(t, func(tb testing.TB) {
			f := &fleet{tb: tb, pages: map[second]*page{}}
			for i, text := range c.grants {
				l := &life{name: filepath.Join(dir, string(rune('a'+i))), seen: map[second]bool{}}
				l.count.Store(minMade)
				if err := os.WriteFile(l.name, []byte(text+"\n"), 0o600); err != nil {
					t.Error(err)
				}
				f.all = append(f.all, l)
			}
			f.all[0].seen[second{9, c.second}] = true
			f.judge(nil)
		})
		if v.Failed() != (c.say != "") || !strings.Contains(v.said, c.say) {
			t.Errorf("%s: the judge reports %q, want %q", c.name, v.said, c.say)
		}
	}
}

func TestProcessesThatRepeatIDs(t *testing.T) {
	parts := []randflake.Parts{{Node: 1, Sequence: 63}, {Node: 1, Sequence: 64},
		{Node: 2, Sequence: 63}}
	v := &verdicts{TB: t}
	f := &fleet{tb: v, pages: map[second]*page{}}
	one, two := &life{seen: map[second]bool{}}, &life{seen: map[second]bool{}}
	f.mark(one, parts)
	if v.Failed() {
		t.Errorf("different IDs are reported: %s", v.said)
	}
	f.mark(two, parts[2:])
	if !v.Failed() {
		t.Error("an ID generated twice is not reported")
	}
}

func TestJudgeOfWrites(t *testing.T) {
	write := func(version uint64, nonce string) lease.Grant {
		return lease.Grant{Nonce: nonce, Version: version}
	}
	for name, c := range map[string]struct {
		stored  lease.Grant
		learned []lease.Grant
		good    bool
	}{
		"all is well": {write(4, "released"),
			[]lease.Grant{write(1, "a"), write(3, "c"), write(2, "b"), write(2, "b")}, true},
		"written twice": {write(3, "c"),
			[]lease.Grant{write(2, "a"), write(2, "b"), write(3, "c")}, false},
		"the last one forgotten": {write(2, "a"), []lease.Grant{write(2, "a"), write(3, "b")},
			false},
		"and written again": {write(2, "b"), []lease.Grant{write(2, "a")}, false},
	} {
		v := &verdicts{TB: t}
		if (&fleet{tb: v}).judgeWrites([]lease.Grant{c.stored}, c.learned); v.Failed() == c.good {
			t.Errorf("%s: the judge reports %q", name, v.said)
		}
	}
}
