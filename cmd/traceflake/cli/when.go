package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/stamp"
)

const timeHelp = `A time is RFC 3339 (2026-01-02T03:04:05Z), a date, Unix time in seconds, milli-,
micro- or nanoseconds, "now", or an offset such as now-90m, now-7d or +24h.`

// parseTime parses a time in the forms of timeHelp.
func parseTime(s string, now time.Time) (time.Time, error) {
	offset, fromNow := strings.CutPrefix(s, "now")
	switch {
	case fromNow && offset == "":
		return now, nil
	case strings.HasPrefix(offset, "-"), strings.HasPrefix(offset, "+"):
		if d, err := model.ParseDurationAllowNegative(strings.TrimPrefix(offset, "+")); err == nil {
			return now.Add(time.Duration(d)), nil
		}
	}
	t, err := stamp.Read(s)
	if err != nil {
		err = fmt.Errorf(`%w, "now" or an offset such as now-90m or now-7d`, err)
	}
	return t, err
}

// durationFlag adds a flag for a duration, such as 30d or 1h30m.
func durationFlag(cmd *cobra.Command, p *time.Duration, name string, value time.Duration, what string) {
	*p = value
	flag := cmd.Flags().VarPF((*model.Duration)(p), name, "", what)
	if value == 0 {
		flag.DefValue = "" // the help says what it means
	}
}

// shortly is a duration as flags have it: 30d, 1h30m.
func shortly(d time.Duration) string { return model.Duration(d).String() }
