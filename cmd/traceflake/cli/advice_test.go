package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	chgo "github.com/ClickHouse/clickhouse-go/v2"
)

// No cause in the table is hidden by an earlier row, and no advice loses anything.
func TestAdvice(t *testing.T) {
	loses := regexp.MustCompile(`\b(move|delete|remove|drop|truncate)\b`)
	for _, row := range advices {
		for _, cause := range row.about {
			var err error
			switch cause := cause.(type) {
			case error:
				err = cause
			case string:
				err = errors.New("library: " + cause)
			case code:
				err = &chgo.Exception{Code: int32(cause)}
			}
			if got := advise(fmt.Errorf("package: call: %w", err)); got != row.fix {
				t.Errorf("%v: %q, want %q", cause, got, row.fix)
			}
		}
		if loses.MatchString(row.fix) {
			t.Errorf("%q may lose something", row.fix)
		}
	}
	// A particular cause precedes a general one.
	for text, want := range map[string]string{
		"transport: connection refused": "nothing listens at this address",
		"transport: no such host":       "correct the host name",
		"transport: idle":               "the server does not answer",
	} {
		err := fmt.Errorf("%w (%s)", context.DeadlineExceeded, text)
		if got := advise(err); !strings.Contains(got, want) {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
	if got := advise(errors.New("something else")); !strings.Contains(got, "change nothing") {
		t.Errorf("no known cause: %q", got)
	}
}
