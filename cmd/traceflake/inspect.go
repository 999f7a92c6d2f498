package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/identify"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/randflake/lease"
)

func inspectCommand(f *flags) *cobra.Command {
	var output, epoch, bits string
	outputs := []string{"table", "json"}
	var unit time.Duration
	cmd := &cobra.Command{
		Use:   "inspect [ID…]",
		Short: "Show what IDs say, and whose they may be",
		Long: `inspect shows what IDs say: time, sequence, node, and whether the halves agree.
It reads trace and span IDs in hex, Randflake IDs in base 32 or as numbers, and
lines of traceparent, b3 and its parts, x-trace-id, X-Amzn-Trace-Id and sw8
headers; from standard input, one a line, when there are no arguments.

Without a secret only the clear half is decoded. With a store it says which
lease owns an ID's node now, and the store's own secret decodes, if it has one
and no secret file is given.

Others' IDs are named as far as their form allows: UUID v1 to v8, ULID,
Snowflake, X-Ray, Brave, Datadog, SOFATracer, SkyWalking, 64-bit B3. Where an ID
may be several things, all are listed; "by chance" is the share of random IDs of
the same form that would look like that kind, the smallest first.

With -o json each ID is an object on a line of its own. Input that is gzip is
decompressed.`,
		Example: `  traceflake inspect 1950fb0f8880000086cdcca4ab608495
  traceflake inspect --store bolt:/var/lib/traceflake/leases.db 1950fb0f8880000086cdcca4ab608495
  traceflake inspect --secret-file secret -o json <ids.gz
  traceflake inspect "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkChoice("output", output, outputs...); err != nil {
				return err
			}
			x := identify.Identifier{Now: time.Now(), Snowflake: identify.Twitter}
			var err error
			if x.Snowflake.Epoch, err = parseTime(epoch, x.Now); err != nil {
				return fmt.Errorf("--snowflake-epoch: %w", err)
			}
			if err := x.Snowflake.SetBits(bits); err != nil {
				return fmt.Errorf("--snowflake-bits: %w", err)
			}
			if x.Snowflake.Unit = unit; unit <= 0 || unit > time.Second {
				return fmt.Errorf("--snowflake-unit: %s is not from 1ns to 1s", unit)
			}
			out := newInspectOutput(output, cmd)
			failed := false
			var owners *owners
			if x.Keyring, owners, err = f.looking(cmd); errors.Is(err, errStoreAway) {
				// The IDs are shown without it.
				failed = true
				fmt.Fprintln(cmd.ErrOrStderr(), "traceflake:", err)
			} else if err != nil {
				return err
			}
			err = eachLine(cmd, args, func(number int, line string) error {
				found, err := x.Line(line)
				if err != nil {
					failed = true
					fmt.Fprintf(cmd.ErrOrStderr(), "traceflake: %s%v\n", place(number), err)
				}
				for _, id := range found {
					owners.tell(id.Candidates)
					if err := out.write(number, id); err != nil {
						return err
					}
				}
				return nil
			})
			if flushErr := out.flush(); err == nil {
				err = flushErr
			}
			if err == nil && failed {
				err = errReported
			}
			return err
		},
	}
	f.addStore(cmd, "store that says which lease owns a node now")
	choice(cmd, &output, "output", "o", "a table or lines of JSON", outputs...)
	cmd.Flags().StringVar(&epoch, "snowflake-epoch", "1288834974657", "first moment of Snowflake IDs, as a time")
	cmd.Flags().StringVar(&bits, "snowflake-bits", "41,10,12", "widths of a Snowflake ID's time, node and sequence")
	cmd.Flags().DurationVar(&unit, "snowflake-unit", time.Millisecond, "unit of a Snowflake ID's time, up to 1s")
	complete(cmd, "snowflake-unit", "1ms", "10ms", "1s")
	return cmd
}

// owners are the leases of a store; nil knows none.
type owners struct {
	blocks []lease.Block
	now    time.Time
}

// looking returns the secrets that decode IDs, and the leases, if there is a
// store. A store that does not answer is an errStoreAway; the secrets are
// returned all the same.
func (f *flags) looking(cmd *cobra.Command) (*randflake.Keyring, *owners, error) {
	c, err := f.config()
	if err != nil {
		return nil, nil, err
	}
	if c.Store == "" {
		k, err := f.keyring(cmd)
		return k, nil, err
	}
	s, err := f.openStore(cmd.Context())
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	k, err := f.decoding(cmd, s)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), storeTimeout)
	defer cancel()
	blocks, err := s.List(ctx)
	if err != nil {
		return k, nil, fmt.Errorf("%w: %w", errStoreAway, err)
	}
	return k, &owners{blocks, time.Now()}, nil
}

var errStoreAway = errors.New("no owners of nodes are shown: the store does not answer")

// tell adds to each candidate with a node whose it is now.
func (o *owners) tell(candidates []identify.Candidate) {
	if o == nil {
		return
	}
	for i := range candidates {
		c := &candidates[i]
		if c.Node == nil {
			continue
		}
		text := "never granted"
		for _, b := range o.blocks {
			if *c.Node >= b.Node && *c.Node-b.Node < b.Nodes {
				text = fmt.Sprintf("block %d+%d, %s", b.Node, b.Nodes, state(b, o.now))
			}
		}
		c.Parts = append(c.Parts, identify.Part{Name: "lease now", Value: text})
	}
}

type inspectOutput struct {
	json  *json.Encoder
	table *tabwriter.Writer
	rows  int
}

func newInspectOutput(format string, cmd *cobra.Command) *inspectOutput {
	if format == "json" {
		return &inspectOutput{json: json.NewEncoder(cmd.OutOrStdout())}
	}
	return &inspectOutput{table: tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)}
}

// tableRows is after how many rows a table is written, with columns as wide as
// those rows need.
const tableRows = 200

func (o *inspectOutput) write(number int, f identify.Found) error {
	if o.json != nil {
		return o.json.Encode(struct {
			Line int `json:"line,omitempty"`
			identify.Found
		}{number, f})
	}
	if o.rows == 0 {
		fmt.Fprintln(o.table, "ID\tKIND\tTIME\tBY CHANCE\tPARTS")
	}
	for i, c := range f.Candidates {
		id := "or"
		if i == 0 {
			if id = f.ID; f.Role != "" {
				id = f.Role + " " + id
			}
		}
		when := "-"
		if c.Time != nil {
			when = c.Time.Format(time.RFC3339Nano)
		}
		fmt.Fprintf(o.table, "%s\t%s\t%s\t%.2g\t%s\n", id, c.Kind, when, c.Chance, details(c))
		o.rows++
	}
	if o.rows >= tableRows {
		return o.flush()
	}
	return nil
}

func (o *inspectOutput) flush() error {
	if o.table == nil {
		return nil
	}
	o.rows = 0
	return o.table.Flush()
}

func details(c identify.Candidate) string {
	var all []string
	for _, p := range c.Parts {
		all = append(all, p.Name+" "+fmt.Sprint(p.Value))
	}
	if c.Note != "" {
		all = append(all, "("+c.Note+")")
	}
	return strings.Join(all, ", ")
}
