package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/identify"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

func inspectCommand(f *flags) *cobra.Command {
	var output *string
	cmd := &cobra.Command{
		Use:   "inspect [ID…]",
		Short: "Decode IDs, and identify those of other systems",
		Long: `inspect decodes trace and span IDs in hex, Randflake IDs in base 32 or as numbers,
the headers traceparent, b3, X-B3-…, x-trace-id and X-Amzn-Trace-Id, and JSON log
records with fields such as trace_id. Without arguments it reads standard input, one
per line; gzip is decompressed. Only a secret, of the file or the store, decodes the
second half. With a store, the lease that an ID's node is in now is shown.

IDs of other systems (UUID v7, ULID, X-Ray, Datadog, 64-bit B3) are identified as far
as their form allows, the likeliest kind first; "false positives" is the fraction of
random IDs of the same form that look like that kind.

With -o json each ID is an object on a line of its own, with its role in a header or a
record:
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
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := f.openStore()
			if err != nil && !errors.Is(err, errNoStore) {
				return err
			}
			if s != nil {
				defer closeStore(s)
			}
			in := inspection{output: *output, now: time.Now(), store: s, blocks: map[uint32]lease.Grant{}}
			keyring, err := f.decoding(cmd.Context(), s)
			if err != nil {
				return err
			}
			in.identifier = identify.Identifier{Keyring: keyring, Now: in.now}
			err = in.all(cmd, args)
			if in.storeErr != nil {
				fmt.Fprintln(cmd.ErrOrStderr(), "traceflake: leases are not shown:", in.storeErr)
				err = cmp.Or(err, errReported)
			}
			return err
		},
	}
	f.addStore(cmd.Flags(), "store that shows the leases of nodes")
	f.addSecret(cmd)
	output = outputFlag(cmd)
	return cmd
}

// inspection is a run of inspect.
type inspection struct {
	identifier identify.Identifier
	output     string
	now        time.Time
	store      driver.Store           // nil: leases are not shown
	storeErr   error                  // the store does not answer
	blocks     map[uint32]lease.Grant // that were read, by node
	named      bool                   // the names of the columns were printed
}

// all inspects arguments or standard input.
func (in *inspection) all(cmd *cobra.Command, args []string) error {
	return eachID(cmd, args, func(number int, text string, problem error) (_, err error) {
		if problem != nil {
			return problem, nil
		}
		found, problem := in.identifier.Line(text)
		for _, id := range found {
			in.addLeases(cmd.Context(), id.Candidates)
			err = errors.Join(err, show(cmd, in.output, func() string { return in.rows(id) }, struct {
				Line int `json:"line,omitempty"`
				identify.Found
			}{number, id}))
		}
		return problem, err
	})
}

// addLeases adds, to each candidate that has a node, the lease that the node is in now. If the store
// does not answer once, it is not asked again.
func (in *inspection) addLeases(ctx context.Context, candidates []identify.Candidate) {
	for i := range candidates {
		c := &candidates[i]
		if in.store == nil || in.storeErr != nil || c.Node == nil {
			continue
		}
		b, known := in.blocks[*c.Node]
		if !known {
			if b, in.storeErr = blockOf(ctx, in.store, *c.Node); in.storeErr != nil {
				continue
			}
			in.blocks[*c.Node] = b
		}
		now := state(b, in.now)
		if b.Version > 0 {
			now = fmt.Sprintf("block %d+%d, %s", b.Node, b.Nodes, now)
		}
		c.Parts = append(c.Parts, identify.Part{Name: "lease now", Value: now})
	}
}

// rows returns a row for each kind that an ID may be, the first time below the names of the columns.
func (in *inspection) rows(f identify.Found) string {
	const columns = "%-36s  %-19s  %-24s  %-15s  %s\n"
	var all strings.Builder
	if !in.named {
		fmt.Fprintf(&all, columns, "ID", "KIND", "TIME", "FALSE POSITIVES", "PARTS")
		in.named = true
	}
	for i, c := range f.Candidates {
		id, at := "or", "-"
		if i == 0 {
			id = strings.TrimSpace(f.Role + " " + f.ID)
		}
		if !c.Time.IsZero() {
			at = c.Time.Format(time.RFC3339Nano)
		}
		var details []string
		for _, part := range c.Parts {
			details = append(details, fmt.Sprint(part.Name, " ", part.Value))
		}
		if c.Note != "" {
			details = append(details, "("+c.Note+")")
		}
		fmt.Fprintf(&all, columns, id, c.Kind, at, fmt.Sprintf("%.2g", c.FalsePositives), strings.Join(details, ", "))
	}
	return all.String()
}
