package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/identify"
)

func inspectCommand(f *commonFlags) *cobra.Command {
	var output *string
	cmd := &cobra.Command{
		Use:   "inspect [ID…]",
		Short: "Decode trace and span IDs",
		Long: `inspect decodes trace and span IDs. It finds them in headers, in log lines of any
form and in addresses: first those with a name such as trace_id, otherwise any of 128
bits. They may be in hex, in decimal, as a UUID or ULID, or in base 32. Without
arguments, and for "-", it reads standard input line by line. The low half is decoded
with a secret of the file or the store.

Each kind that an ID may be of is shown, if its time is plausible, the likeliest first:
ours, UUID v7, ULID, Datadog, X-Ray, and for decimal numbers Snowflakes.

With -o json each kind that an ID may be of is a line, with the ID's role in a header or
a record:
{"line":1,"role":"trace","id":"19544cb1b3000000209f67de4ce8066c",
"kind":"traceflake trace ID","time":"2026-11-23T06:03:09.542Z","sequence":0,
"halves":"agree","second":"2026-11-23T06:03:09Z","node":31447,"node_sequence":9732,
"secret":1}
{"line":1,"role":"span","id":"34b38f8cb108e663","kind":"Randflake ID",
"time":"2026-11-23T06:03:09Z","second":"2026-11-23T06:03:09Z","node":9812,
"node_sequence":7613,"secret":1,"text":"39csfhioghpj3","note":"by its time only; …"}
{"line":2,"id":"1750123456789012480","kind":"Snowflake (Twitter)",
"time":"2024-01-24T11:48:42.476Z","parts":[{"name":"machine","value":"974"},…]}`,
		Example: `  traceflake inspect 1950fb0f8880000086cdcca4ab608495
  traceflake inspect --store file:/var/lib/traceflake/leases 1950fb0f8880000086cdcca4ab608495
  traceflake inspect --secret-file secret -o json <ids
  traceflake inspect <error.log
  traceflake inspect "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			keyring, err := f.keys(cmd)
			if err != nil && !errors.Is(err, errNoSecret) {
				return err
			}
			in := inspection{cmd: cmd, output: *output, identifier: identify.Identifier{
				Keyring: keyring, Now: time.Now()}}
			return in.all(args)
		},
	}
	f.addStore(cmd.Flags(), "store whose histories' keys decode IDs")
	f.addSecret(cmd)
	output = outputFlag(cmd)
	return cmd
}

// inspection is a run of inspect.
type inspection struct {
	cmd        *cobra.Command
	identifier identify.Identifier
	output     string
	named      bool // the names of the columns were printed
}

// all inspects arguments or standard input.
func (in *inspection) all(args []string) error {
	return eachID(in.cmd, args, func(number int, text string) (problem, err error) {
		found, problem := in.identifier.Line(text)
		for _, id := range found {
			err = errors.Join(err,
				show(in.cmd.OutOrStdout(), in.output, func() string { return in.row(id) }, struct {
					Line int `json:"line,omitempty"`
					identify.Found
				}{number, id}))
		}
		return problem, err
	})
}

// row returns a row for an ID, the first one below the names of the columns.
func (in *inspection) row(id identify.Found) string {
	const columns = "%-38s  %-19s  %-24s  %s\n"
	names := ""
	if !in.named {
		names = fmt.Sprintf(columns, "ID", "KIND", "TIME", "PARTS")
		in.named = true
	}
	at := "-"
	if !id.Time.IsZero() {
		at = id.Time.Format(time.RFC3339Nano)
	}
	var parts []string
	add := func(format string, values ...any) {
		parts = append(parts, fmt.Sprintf(format, values...))
	}
	if id.Sequence != nil {
		add("sequence %d", *id.Sequence)
	}
	if id.Halves != "" {
		add("halves %s", id.Halves)
	}
	if d := id.Decoded; d != nil {
		add("second %s, node %d, node sequence %d, secret %d", rfc3339(d.Second), d.Node,
			d.NodeSequence, d.Secret)
	}
	for _, p := range id.Parts {
		add("%s %s", p.Name, p.Value)
	}
	if id.Text != "" {
		add("text %s", id.Text)
	}
	if id.Note != "" {
		add("(%s)", id.Note)
	}
	return names + fmt.Sprintf(columns,
		strings.TrimSpace(id.Role+" "+id.ID), id.Kind, at, strings.Join(parts, ", "))
}
