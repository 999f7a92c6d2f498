package cli

import "github.com/spf13/cobra"

func clickhouseStatusCommand(s *spansServer) *cobra.Command {
	d := &doctor{allFacts: true}
	d.cmd = &cobra.Command{
		Use:   "status",
		Short: "Show the spans table, and how far its adoption is",
		Long: `status shows the facts about the spans table, what is wrong with it, and how far its
adoption is: the part of doctor that is about ClickHouse, in full. The exit code is 1 if
something is wrong.`,
		Example: "  traceflake clickhouse status --dsn clickhouse://localhost:9000/otel",
		RunE: func(*cobra.Command, []string) error {
			d.clickhouse = *s
			d.spans()
			return d.err
		},
	}
	d.output = outputFlag(d.cmd)
	return d.cmd
}
