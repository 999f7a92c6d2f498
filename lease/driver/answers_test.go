package driver

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/lease"
)

// Each recorded message finds its own row.
func TestAnswers(t *testing.T) {
	for _, row := range network {
		for _, message := range row.Recorded {
			err := Diagnose(errors.New(message))
			if lease.Fix(err) != row.Fix || !means(err, row.Means) {
				t.Errorf("%s: %v, fix %q, want %+v", message, err, lease.Fix(err), row)
			}
		}
		if len(row.Recorded) == 0 {
			t.Errorf("no message is recorded of %+v", row)
		}
	}
}

// A missing socket of Unix is a server that has not started, no missing file.
func TestMissingSocket(t *testing.T) {
	_, err := net.Dial("unix", t.TempDir()+"/.s.PGSQL.5432")
	if fix := lease.Fix(Diagnose(err)); fix != CommonFix("NOTHING_THERE") {
		t.Errorf("%v, fix %q", err, fix)
	}
}

// means reports whether an error has this meaning, and no lasting one besides.
func means(err, meaning error) bool {
	return (meaning == nil || errors.Is(err, meaning)) &&
		lease.Permanent(err) == lease.Permanent(meaning)
}

func TestParseAnswers(t *testing.T) {
	rows := ParseAnswers("# comment\nA refused some text\n\tdo\n\tthis\n\t< Some Text here\n" +
		"\n- later\n\t$TLS\n")
	if len(rows) != 2 || rows[0].Fix != "do this" ||
		!errors.Is(rows[0].Means, lease.ErrMisconfigured) ||
		rows[0].Recorded[0] != "Some Text here" || rows[1].Fix != CommonFix("TLS") ||
		rows.Find("A", "with SOME text").Fix != "do this" ||
		rows.Find("B", "some text").Fix != rows[1].Fix {
		t.Errorf("parsed: %+v", rows)
	}
	for _, wrong := range []string{"A perhaps\n", "A\n", "A later\n\t$NONE\n"} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "driver: ") {
					t.Errorf("%q: %s", wrong, text)
				}
			}()
			ParseAnswers(wrong)
		}()
	}
}
