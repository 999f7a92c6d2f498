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
lines of traceparent, b3 and its parts, x-trace-id and X-Amzn-Trace-Id headers,
and log records in JSON with fields such as trace_id; from standard input, one
per line, if there are no arguments.

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
		k, err := f.keyring()
		return k, nil, err
	}
	s, err := f.openStore(cmd.Context(), reading)
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	k, err := f.decoding(s)
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

// linesAtOnce is how many lines make up one table, with columns of the same width.
const linesAtOnce = 200

// all inspects arguments or standard input, and reports whether every line was
// understood.
func (in inspection) all(cmd *cobra.Command, args []string) (understood bool, err error) {
	understood = true
	enc := json.NewEncoder(cmd.OutOrStdout())
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	lines := 0
	err = eachLine(cmd, args, func(number int, line string) error {
		found, err := in.identifier.Line(line)
		if err != nil {
			understood = false
			fmt.Fprintf(cmd.ErrOrStderr(), "traceflake: %s%v\n", place(number), err)
		}
		for _, f := range found {
			in.owners.tell(f.Candidates)
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
			if lines == 0 {
				fmt.Fprintln(table, "ID\tKIND\tTIME\tBY CHANCE\tPARTS")
			}
			addRows(table, f)
			if lines++; lines == linesAtOnce {
				lines = 0
				if err := table.Flush(); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return understood, errors.Join(table.Flush(), err)
}

// addRows adds a row for each kind that an ID may be.
func addRows(table io.Writer, f identify.Found) {
	for i, c := range f.Candidates {
		id, at := "or", "-"
		if i == 0 {
			if id = f.ID; f.Role != "" {
				id = f.Role + " " + id
			}
		}
		if c.Time != nil {
			at = c.Time.Format(time.RFC3339Nano)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%.2g\t%s\n", id, c.Kind, at, c.Chance, details(c))
	}
}

func details(c identify.Candidate) string {
	var all []string
	for _, p := range c.Parts {
		all = append(all, fmt.Sprint(p.Name, " ", p.Value))
	}
	if c.Note != "" {
		all = append(all, "("+c.Note+")")
	}
	return strings.Join(all, ", ")
}
