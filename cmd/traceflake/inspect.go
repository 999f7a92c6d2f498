package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/identify"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

func inspectCommand(f *flags) *cobra.Command {
	var output string
	outputs := []string{"table", "json"}
	cmd := &cobra.Command{
		Use:   "inspect [ID…]",
		Short: "Show the content of IDs, and what may have made them",
		Long: `inspect decodes IDs: time, sequence, node, and whether the halves agree.
It reads trace and span IDs in hex, Randflake IDs in base 32 or as numbers, and
lines of traceparent, b3 and its parts, x-trace-id and X-Amzn-Trace-Id headers; from standard input, one per line, if there are no arguments.

Without a secret only the clear half is decoded. With a store it shows which
lease owns an ID's node now. The store's own secret, if it has one, is used if no
secret file is given.

Foreign IDs are identified as far as their form allows: UUID v7, ULID, X-Ray,
Datadog, 64-bit B3. Where an ID may be of several kinds, all are listed, the
likeliest first; "by chance" is the fraction of random IDs of the same form that
look like that kind.

With -o json each ID is an object on its own line. gzip input is decompressed.`,
		Example: `  traceflake inspect 1950fb0f8880000086cdcca4ab608495
  traceflake inspect --store bolt:/var/lib/traceflake/leases.db 1950fb0f8880000086cdcca4ab608495
  traceflake inspect --secret-file secret -o json <ids.gz
  traceflake inspect "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkChoice("output", output, outputs...); err != nil {
				return err
			}
			in := inspection{identifier: identify.Identifier{Now: time.Now()}, json: output == "json"}
			failed := false
			var err error
			if in.identifier.Keyring, in.owners, err = f.looking(cmd); errors.Is(err, errStoreAway) {
				// The IDs are shown without owners.
				failed = true
				fmt.Fprintln(cmd.ErrOrStderr(), "traceflake:", err)
			} else if err != nil {
				return err
			}
			allFound, err := in.all(cmd, args)
			if err == nil && (failed || !allFound) {
				err = errReported
			}
			return err
		},
	}
	f.addStore(cmd, "store whose leases show the nodes' owners")
	choice(cmd, &output, "output", "o", "a table or lines of JSON", outputs...)
	return cmd
}

// owners are the leases of a store. A nil owners has none.
type owners struct {
	blocks []lease.Block
	now    time.Time
}

// looking returns the secrets that decode IDs and, if there is a store, its leases. If the store
// does not answer, it returns the secrets with errStoreAway.
func (f *flags) looking(cmd *cobra.Command) (*randflake.Keyring, *owners, error) {
	c, err := f.config()
	if err != nil {
		return nil, nil, err
	}
	if c.Store == "" {
		k, err := f.keyring(cmd)
		return k, nil, err
	}
	s, err := f.openStore(cmd.Context(), reading)
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

var errStoreAway = errors.New("owners of nodes are not shown: the store does not answer")

// tell adds, to each candidate that has a node, the lease that the node is in now.
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

// inspection says how to inspect lines.
type inspection struct {
	identifier identify.Identifier
	owners     *owners
	json       bool
}

// inputLine is a line and its number, 0 for an argument.
type inputLine struct {
	number int
	text   string
}

// linesAtOnce is how many lines are inspected in one batch. In a table, the column widths are the
// same throughout a batch.
const linesAtOnce = 200

// all inspects arguments or standard input, and reports whether every line was
// understood.
func (in inspection) all(cmd *cobra.Command, args []string) (understood bool, err error) {
	var strange atomic.Bool
	out := newInParallel(cmd.OutOrStdout(), cmd.ErrOrStderr())
	var lines []inputLine
	start := func() error {
		these := lines
		lines = make([]inputLine, 0, linesAtOnce)
		return out.start(func() *piece {
			p := in.some(these)
			if len(p.errOut) > 0 {
				strange.Store(true)
			}
			return p
		})
	}
	err = eachLine(cmd, args, func(number int, line string) error {
		lines = append(lines, inputLine{number, line})
		if len(lines) < linesAtOnce {
			return nil
		}
		return start()
	})
	if len(lines) > 0 {
		err = errors.Join(err, start())
	}
	if writeErr := out.wait(); err == nil {
		err = writeErr
	}
	return !strange.Load(), err
}

// some inspects a batch of lines.
func (in inspection) some(lines []inputLine) *piece {
	p := newPiece()
	t := &p.table
	t.columns = 5
	for _, line := range lines {
		found, err := in.identifier.Line(line.text)
		if err != nil {
			p.errOut = fmt.Appendf(p.errOut, "traceflake: %s%v\n", place(line.number), err)
		}
		for _, f := range found {
			in.owners.tell(f.Candidates)
			if in.json {
				p.out = appendJSON(p.out, line.number, f)
				continue
			}
			if len(t.ends) == 0 {
				t.add("ID", "KIND", "TIME", "BY CHANCE", "PARTS")
			}
			addRows(t, f)
		}
	}
	p.out = t.appendTo(p.out)
	return p
}

func appendJSON(b []byte, number int, f identify.Found) []byte {
	b = append(b, '{')
	if number > 0 {
		b = strconv.AppendInt(append(b, `"line":`...), int64(number), 10)
		b = append(b, ',')
	}
	return append(f.AppendJSON(b), "}\n"...)
}

// addRows adds a row for each kind that an ID may be.
func addRows(t *table, f identify.Found) {
	for i, c := range f.Candidates {
		id := "or"
		if i == 0 {
			if id = f.ID; f.Role != "" {
				id = f.Role + " " + id
			}
		}
		t.add(id, c.Kind)
		if c.Time == nil {
			t.text = append(t.text, '-')
		} else {
			t.text = c.Time.AppendFormat(t.text, time.RFC3339Nano)
		}
		t.end()
		t.text = strconv.AppendFloat(t.text, c.Chance, 'g', 2, 64)
		t.end()
		t.text = appendDetails(t.text, c)
		t.end()
	}
}

func appendDetails(b []byte, c identify.Candidate) []byte {
	for i, p := range c.Parts {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(append(b, p.Name...), ' ')
		switch v := p.Value.(type) {
		case string:
			b = append(b, v...)
		case uint32:
			b = strconv.AppendUint(b, uint64(v), 10)
		default:
			b = fmt.Append(b, v)
		}
	}
	if c.Note == "" {
		return b
	}
	if len(c.Parts) > 0 {
		b = append(b, ", "...)
	}
	return append(append(append(b, '('), c.Note...), ')')
}
