package cli

import (
	"cmp"
	"database/sql"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/clickhouse"
)

func clickhouseStatusCommand(s *spansServer) *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Show the spans table, and how far its adoption is",
		Example: "  traceflake clickhouse status --dsn clickhouse://localhost:9000/otel",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.with(cmd.Context(), func(db *sql.DB) error {
				status, err := s.adoption().Status(cmd.Context(), db)
				if err != nil {
					return err
				}
				out := cmd.OutOrStdout()
				for _, t := range status.Tables {
					printStatus(out, t)
				}
				if status.Problem != nil {
					fmt.Fprintln(out, "problem:", status.Problem)
				}
				if status.Obstacle != nil {
					_, err = fmt.Fprintln(out, "cannot be adopted:", status.Obstacle)
					return err
				}
				_, err = fmt.Fprintf(out, "the adoption is %s; %s\n", status.Phase, status.Next)
				return err
			})
		},
	}
}

func printStatus(out io.Writer, t clickhouse.TableStatus) {
	name, spans, ordered, expires := t.Table, fmt.Sprint(t.Rows), "no spans", "never"
	if t.New {
		name += ", the new table of an adoption"
	}
	if t.Bytes > 0 {
		spans += fmt.Sprintf(", %.1f MiB", float64(t.Bytes)/(1<<20))
	}
	if t.Future > 0 {
		spans += fmt.Sprintf("; %d of them begin in the future", t.Future)
	}
	if t.Sampled > 0 {
		ordered = fmt.Sprintf("%.1f %% of %d spans of the newest partition", 100*t.Ordered,
			t.Sampled)
	}
	if !t.Expires.IsZero() {
		expires = fmt.Sprintf("in %.1f days (%s)", time.Until(t.Expires).Hours()/24,
			rfc3339(t.Expires))
	}
	fmt.Fprintln(out, name)
	line := func(label, value string) { fmt.Fprintf(out, "  %-15s %s\n", label, value) }
	line("sorted by", cmp.Or(t.SortingKey, "nothing"))
	line("engine", t.Engine)
	line("TTL", cmp.Or(t.TTL, "none"))
	line("storage policy", cmp.Or(t.StoragePolicy, "none"))
	line("spans", spans)
	line("ordered IDs", ordered)
	line("last expires", expires)
	line("read by", cmp.Or(strings.Join(t.Views, ", "), "no views"))
}
