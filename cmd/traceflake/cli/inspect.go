package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/identify"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

func inspectCommand(f *flags) *cobra.Command {
	var output *string
	cmd := &cobra.Command{
		Use:   "inspect [ID…]",
		Short: "Decode IDs, and identify those of other systems",
		Long: `inspect decodes IDs: time, sequence, node, and whether the halves agree. It reads
trace and span IDs in hex, Randflake IDs in base 32 or as numbers, the headers
traceparent, b3, X-B3-…, x-trace-id and X-Amzn-Trace-Id, and JSON log records
with fields such as trace_id. Without arguments it reads standard input, one per
line; gzip is decompressed.

Without a secret only the first half is decoded. A store that has its own secret
supplies one if there is no secret file. With a store, inspect also shows which
lease an ID's node belongs to now.

IDs of other systems (UUID v7, ULID, X-Ray, Datadog, 64-bit B3) are identified as
far as their form allows. If an ID may be of several kinds, all are listed, the
likeliest first; "false positives" is the fraction of random IDs of the same form
that look like that kind.

With -o json each ID is an object on a line of its own, with its line number in standard
input, and its role if it comes from a header or a record. Parts are those of the kind:
{"line":1,"role":"trace","id":"19544cb1b3000000209f67de4ce8066c","candidates":[
{"kind":"traceflake trace ID","time":"2026-11-23T06:03:09.542Z","parts":{"sequence":0,
"second":"2026-11-23T06:03:09Z","node":31447,"node_sequence":9732,"secret":1,
"halves":"agree","lease_now":"…"},"false_positives":4.6e-10}]}
{"line":1,"role":"span","id":"34b38f8cb108e663","candidates":[{"kind":"Randflake ID",
"time":"2026-11-23T06:03:09Z","parts":{"node":9812,"node_sequence":7613,"secret":1,
"text":"39csfhioghpj3"},"note":"by its time only; …","false_positives":0.061}]}`,
		Example: `  traceflake inspect 1950fb0f8880000086cdcca4ab608495
  traceflake inspect --store bolt:/var/lib/traceflake/leases.db 1950fb0f8880000086cdcca4ab608495
  traceflake inspect --secret-file secret -o json <ids.gz
  traceflake inspect "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			in := inspection{identifier: identify.Identifier{Now: time.Now()}, json: *output == "json"}
			var err error
			if in.identifier.Keyring, in.owners, err = f.looking(cmd); err != nil {
				return err
			}
			err = in.all(cmd, args)
			if o := in.owners; o != nil {
				closeStore(o.store)
				if o.err != nil {
					in.failed = true // the IDs were shown without leases
					fmt.Fprintln(cmd.ErrOrStderr(), "traceflake: leases are not shown:", o.err)
				}
			}
			if err != nil {
				return err
			}
			if in.failed {
				return errReported
			}
			return nil
		},
	}
	f.addStore(cmd, cmd.Flags(), "store that shows the leases of nodes")
	f.addSecret(cmd)
	output = outputFlag(cmd)
	return cmd
}

// owners looks up the leases of a store. A nil owners has none.
type owners struct {
	store driver.Store
	now   time.Time
	known map[uint32]lease.Grant // by node
	err   error                  // the store does not answer
}

// looking returns the secrets that decode IDs and the leases of the store, if there is one.
func (f *flags) looking(cmd *cobra.Command) (*randflake.Keyring, *owners, error) {
	c, err := f.config()
	if err != nil {
		return nil, nil, err
	}
	if c.Store == "" {
		k, err := f.keyring()
		return k, nil, err
	}
	s, err := f.openStore()
	if err != nil {
		return nil, nil, err
	}
	k, err := f.decoding(cmd.Context(), s)
	if err != nil {
		closeStore(s)
		return nil, nil, err
	}
	return k, &owners{store: s, now: time.Now(), known: map[uint32]lease.Grant{}}, nil
}

// addTo adds, to each candidate that has a node, the lease that the node is in now. If the store does
// not answer once, it is not asked again.
func (o *owners) addTo(ctx context.Context, candidates []identify.Candidate) {
	if o == nil {
		return
	}
	for i := range candidates {
		p := &candidates[i].Parts
		if p.Node == nil || o.err != nil {
			continue
		}
		b, known := o.known[*p.Node]
		if !known {
			if b, o.err = blockOf(ctx, o.store, *p.Node); o.err != nil {
				continue
			}
			o.known[*p.Node] = b
		}
		p.Lease = "never granted"
		if b.Version > 0 {
			p.Lease = fmt.Sprintf("block %d+%d, %s", b.Node, b.Nodes, state(b, o.now))
		}
	}
}

// inspection is a run of inspect.
type inspection struct {
	identifier identify.Identifier
	owners     *owners
	json       bool
	failed     bool // something was not understood
}

// linesAtOnce is how many lines form one table, with columns of the same width.
const linesAtOnce = 200

// all inspects arguments or standard input.
func (in *inspection) all(cmd *cobra.Command, args []string) error {
	enc := json.NewEncoder(cmd.OutOrStdout())
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	lines := 0
	none := true
	read := reading{idle: table.Flush}
	read.each = func(number int, line string) error {
		none = false
		found, err := in.identifier.Line(line)
		if line == tooLong {
			found, err = nil, errTooLong
		}
		if err != nil {
			in.failed = true
			fmt.Fprintf(cmd.ErrOrStderr(), "traceflake: %s%v%s\n", place(number), err, hint(number, line))
		}
		for _, f := range found {
			in.owners.addTo(cmd.Context(), f.Candidates)
			if in.json {
				err := enc.Encode(struct {
					Line int `json:"line,omitempty"`
					identify.Found
				}{number, f})
				if err != nil {
					return err
				}
				continue
			}
			if lines%linesAtOnce == 0 {
				if err := table.Flush(); err != nil {
					return err
				}
				fmt.Fprintln(table, "ID\tKIND\tTIME\tFALSE POSITIVES\tPARTS")
			}
			addRows(table, f)
			lines++
		}
		return nil
	}
	err := read.read(cmd, args)
	if err == nil && none {
		err = errors.New("no IDs to inspect")
	}
	return err
}

// addRows adds a row for each kind that an ID may be.
func addRows(table io.Writer, f identify.Found) {
	for i, c := range f.Candidates {
		id, at := "or", "-"
		if i == 0 {
			id = strings.TrimSpace(f.Role + " " + f.ID)
		}
		if !c.Time.IsZero() {
			at = c.Time.Format(time.RFC3339Nano)
		}
		falsePositives := strconv.FormatFloat(c.FalsePositives, 'g', 2, 64)
		_, _ = io.WriteString(table, strings.Join([]string{id, c.Kind, at, falsePositives, details(c) + "\n"}, "\t"))
	}
}

// details lists the parts that an ID has, and the note.
func details(c identify.Candidate) string {
	number := func(n *uint32) string {
		if n == nil {
			return ""
		}
		return strconv.FormatUint(uint64(*n), 10)
	}
	p, secret := c.Parts, ""
	if p.Secret > 0 {
		secret = strconv.Itoa(p.Secret)
	}
	all := make([]string, 0, 8)
	for _, part := range [...]struct{ name, value string }{
		{"sequence ", number(p.Sequence)}, {"second ", p.Second},
		{"node ", number(p.Node)}, {"node sequence ", number(p.NodeSequence)}, {"secret ", secret},
		{"halves ", p.Halves}, {"text ", p.Text}, {"hex ", p.Hex}, {"X-Ray form ", p.XRayForm},
		{"_dd.p.tid ", p.DatadogHigh}, {"low 64 bits ", p.Low}, {"lease now ", p.Lease},
	} {
		if part.value != "" {
			all = append(all, part.name+part.value)
		}
	}
	if c.Note != "" {
		all = append(all, "("+c.Note+")")
	}
	return strings.Join(all, ", ")
}
