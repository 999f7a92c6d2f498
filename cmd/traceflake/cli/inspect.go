package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/identify"
	"github.com/traceflake/traceflake/lease/fleet"
	"github.com/traceflake/traceflake/traceid"
)

func inspectCommand(f *commonFlags) *cobra.Command {
	in := inspection{identifier: identify.Identifier{Now: time.Now()}}
	var output *string
	var verify bool
	cmd := &cobra.Command{
		Use:   "inspect [ID…]",
		Short: "Decode and verify trace and span IDs",
		Long: `inspect decodes trace and span IDs. It finds them in headers, in log lines of any
form and in addresses: first those with a name such as trace_id, otherwise any of 128
bits. They may be in hex, in decimal, as a UUID or ULID, or in base64. Without
arguments, and for "-", it reads the lines of standard input, such as <error.log, and
skips those without an ID. The low half is decoded with a secret of the file or the
store.

Each kind that an ID may be of is shown, if its time is plausible, the likeliest first:
ours, UUID v7, ULID, Datadog, X-Ray, and for decimal numbers Snowflakes.

With --verify the halves of each trace ID must agree under one of the secrets, and its
time must be plausible; otherwise the reason is shown. The exit code is 1 if an ID was
not verified, or if a line has no trace ID. IDs of clients, random fallback IDs and IDs
of old records do not verify. The result is a hint of origin, not authentication.

With -o json each kind that an ID may be of is a line, with the ID's role in a header or
a record:
{"line":1,"role":"trace","id":"19544cb1b3000000209f67de4ce8066c",
"kind":"traceflake trace ID","time":"2026-11-23T06:03:09.542Z","sequence":0,
"halves":"agree","second":"2026-11-23T06:03:09Z","node":31447,"node_sequence":9732,
"secret":1,"verified":true}
{"line":1,"role":"span","id":"34b38f8cb108e663","kind":"Randflake ID",
"time":"2026-11-23T06:03:09Z","second":"2026-11-23T06:03:09Z","node":9812,
"node_sequence":7613,"secret":1,"text":"39csfhioghpj3","note":"by its time only; …"}
{"line":2,"id":"1750123456789012480","kind":"Snowflake (Twitter)",
"time":"2024-01-24T11:48:42.476Z","parts":[{"name":"machine","value":"974"},…],
"verified":false,"reason":"…"}`,
		Example: `  traceflake inspect 1950fb0f8880000086cdcca4ab608495
  traceflake inspect --store file:/var/lib/traceflake/leases 1950fb0f8880000086cdcca4ab608495
  traceflake inspect --secret-file secret -o json <ids
  traceflake inspect --secret-file secret --verify --max-age 30d <ids
  traceflake inspect <error.log
  traceflake inspect "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			keyring, err := f.keys(cmd)
			if err != nil && (verify || !errors.Is(err, fleet.ErrNoSecret)) {
				return err
			}
			in.cmd, in.output, in.identifier.Keyring = cmd, *output, keyring
			if verify {
				in.verifier = traceid.NewVerifier(keyring, traceid.WithMaxAge(in.maxAge),
					traceid.WithSkew(in.skew))
			}
			return eachID(cmd, args, verify, in.line)
		},
	}
	f.addStore(cmd.Flags(), "store whose histories' keys decode IDs")
	f.addSecret(cmd)
	output = outputFlag(cmd)
	cmd.Flags().BoolVar(&verify, "verify", false, "exit with 1 unless all trace IDs are verified")
	durationFlag(cmd, &in.maxAge, "max-age", 24*time.Hour, "with --verify, how old an ID may be")
	durationFlag(cmd, &in.skew, "skew", time.Minute,
		"with --verify, how far in the future an ID may be")
	return cmd
}

// inspection is a run of inspect.
type inspection struct {
	cmd          *cobra.Command
	identifier   identify.Identifier
	output       string
	verifier     *traceid.Verifier // nil without --verify
	maxAge, skew time.Duration
	named        bool // the names of the columns were printed
}

// verdict is the result of verifying a trace ID.
type verdict struct {
	Verified bool   `json:"verified"`
	Reason   string `json:"reason,omitempty"` // why it is not verified
}

// line inspects a line. The problem is the one to report, or errReported.
func (in *inspection) line(number int, text string) (problem, err error) {
	found, problem := in.identifier.Line(text)
	traces := 0
	for _, id := range found {
		var v *verdict
		if in.verifier != nil && id.TraceID.IsValid() {
			traces++
			if v = in.verify(id.TraceID); !v.Verified {
				problem = errReported
			}
		}
		err = errors.Join(err,
			show(in.cmd.OutOrStdout(), in.output, in.row(id, v), struct {
				Line int `json:"line,omitempty"`
				identify.Found
				*verdict
			}{number, id, v}))
	}
	if in.verifier != nil && traces == 0 {
		problem = cmp.Or(problem, fmt.Errorf("%w: %.60q contains no trace ID",
			identify.ErrUnknown, text))
	}
	return problem, err
}

// verify verifies a trace ID.
func (in *inspection) verify(id trace.TraceID) *verdict {
	if in.verifier.Verify(id) {
		return &verdict{Verified: true}
	}
	t := traceid.Time(id)
	at := rfc3339(t)
	switch age := time.Since(t); {
	case t.IsZero():
		return &verdict{Reason: "64 bits: it has no time"}
	case age > in.maxAge:
		return &verdict{Reason: fmt.Sprintf("age: its time is %s, more than %s ago (--max-age)",
			at, shortly(in.maxAge))}
	case -age > in.skew:
		return &verdict{Reason: fmt.Sprintf("future: its time is %s, more than %s ahead (--skew)",
			at, shortly(in.skew))}
	}
	return &verdict{Reason: "halves: no secret decodes the low half to the time of the clear " +
		"half, " + at}
}

// row returns a row for an ID, the first one below the names of the columns.
func (in *inspection) row(id identify.Found, v *verdict) string {
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
	switch {
	case v != nil && v.Verified:
		add("verified")
	case v != nil:
		add("not verified: %s", v.Reason)
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
