package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/identify"
	"github.com/traceflake/traceflake/randflake/lease"
)

func inspectCommand(f *flags) *cobra.Command {
	var output, epoch, bits string
	var unit time.Duration
	cmd := &cobra.Command{
		Use:   "inspect [ID…]",
		Short: "Show what IDs say, and whose they may be",
		Long: `inspect shows what IDs say: time, sequence, node, and whether the halves agree.
It reads trace and span IDs in hex, Randflake IDs in base 32 or as numbers, and
lines of traceparent, b3 and its parts, x-trace-id, X-Amzn-Trace-Id and sw8
headers; from standard input, one a line, when there are no arguments.

Without a secret only the clear half speaks. With a store it says which lease
owns an ID's node now.

Others' IDs are named as far as their form allows: UUID v1 to v8, ULID,
Snowflake, X-Ray, Brave, Datadog, SOFATracer, SkyWalking, 64-bit B3. Where an ID
may be several things, all are listed; "by chance" is the share of random IDs of
the same form that would look like that kind, the smallest first.

With -o json each ID is an object on a line of its own.`,
		RunE: func(cmd *cobra.Command, args []string) error {
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
			out, err := newInspectOutput(output, cmd.OutOrStdout())
			if err != nil {
				return err
			}
			if x.Keyring, err = f.keyring(cmd); err != nil {
				return err
			}
			failed := false
			owners, err := f.owners(cmd.Context())
			if errors.Is(err, errStoreAway) {
				// The IDs speak without it.
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
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	cmd.Flags().StringVar(&epoch, "snowflake-epoch", "1288834974657", "first moment of Snowflake IDs, as a time")
	cmd.Flags().StringVar(&bits, "snowflake-bits", "41,10,12", "widths of a Snowflake ID's time, node and sequence")
	cmd.Flags().DurationVar(&unit, "snowflake-unit", time.Millisecond, "unit of a Snowflake ID's time, up to 1s")
	return cmd
}

// owners are the leases of a store; nil knows none.
type owners struct {
	blocks []lease.Block
	now    time.Time
}

func (f *flags) owners(ctx context.Context) (*owners, error) {
	c, err := f.config()
	if err != nil || c.Store == "" {
		return nil, err
	}
	s, err := f.openStore(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	blocks, err := s.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errStoreAway, err)
	}
	return &owners{blocks, time.Now()}, nil
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

func newInspectOutput(format string, w io.Writer) (*inspectOutput, error) {
	switch format {
	case "json":
		return &inspectOutput{json: json.NewEncoder(w)}, nil
	case "table":
		return &inspectOutput{table: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}, nil
	}
	return nil, fmt.Errorf("--output: %q is not table or json", format)
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
