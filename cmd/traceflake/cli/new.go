package cli

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/internal/entropy"
	"github.com/traceflake/traceflake/randflake"
)

func newCommand(f *flags) *cobra.Command {
	var n int
	var at string
	var span bool
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Generate trace IDs",
		Long: `new generates trace IDs, one per line. With a store the nodes are leased, and the IDs
are unique in the fleet. With only a secret file the IDs decode and verify, but
uniqueness is only probabilistic. With neither, the secret is random and not kept.

--at generates trace IDs for records of that time; they decode but do not verify. With
"-" it reads times from standard input, one per line, and prints an ID for each.
` + timeHelp,
		Example: `  traceflake new -n 1000 --store bolt:/var/lib/traceflake/leases.db
  traceflake new --at 2021-05-06T07:08:09Z --secret-file secret
  traceflake new --span`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			var t time.Time
			switch {
			case n < 1:
				return fmt.Errorf("-n: %d is less than 1", n)
			case at != "" && span:
				return errors.New("--at is for trace IDs; a span ID always has the current time")
			case at != "" && at != "-":
				if t, err = parseTime(at, time.Now()); err != nil {
					return fmt.Errorf("--at: %w", err)
				}
			}
			return f.withGenerator(cmd, func(g generator) error {
				write := func(at time.Time) error {
					id, err := g.one(cmd.Context(), at, span)
					if err == nil {
						_, err = fmt.Fprintln(cmd.OutOrStdout(), id)
					}
					return cmp.Or(err, context.Cause(cmd.Context()))
				}
				if at == "-" {
					return eachLine(cmd, nil, func(number int, text string, problem error) error {
						at, err := parseTime(text, time.Now())
						if err = cmp.Or(problem, err); err == nil {
							err = write(at)
						}
						if err != nil {
							err = fmt.Errorf("line %d: %w", number, err)
						}
						return err
					})
				}
				for range n {
					if err := write(t); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	f.addStore(cmd.Flags(), "store to lease nodes from")
	f.addSecret(cmd)
	cmd.Flags().IntVarP(&n, "number", "n", 1, "how many IDs")
	cmd.Flags().StringVar(&at, "at", "", "generate IDs for records of this time")
	cmd.Flags().BoolVar(&span, "span", false, "generate span IDs")
	return cmd
}

// generator generates IDs: setup.IDs, or without leases an idgen.Generator. It fails where a service
// would use random IDs.
type generator struct {
	ids interface {
		NewIDs(context.Context) (trace.TraceID, trace.SpanID)
		NewSpanID(context.Context, trace.TraceID) trace.SpanID
		NewTraceIDAt(time.Time) (trace.TraceID, error)
		Fallbacks() int64
	}
}

// one returns a span ID or a trace ID, for a record if its time is not zero.
func (g generator) one(ctx context.Context, at time.Time, span bool) (id fmt.Stringer, err error) {
	switch {
	case !at.IsZero():
		return g.at(at)
	case span:
		id = g.ids.NewSpanID(ctx, trace.TraceID{})
	default:
		id, _ = g.ids.NewIDs(ctx)
	}
	return id, g.fallback()
}

// at returns a trace ID for a record.
func (g generator) at(t time.Time) (trace.TraceID, error) {
	id, err := g.ids.NewTraceIDAt(t)
	return id, cmp.Or(err, g.fallback())
}

// fallback returns an error if an ID was random.
func (g generator) fallback() error {
	if g.ids.Fallbacks() > 0 {
		return errors.New("no leased node to generate IDs on; the store's answer is above")
	}
	return nil
}

// withGenerator calls call with a generator configured by the flags and the environment.
func (f *flags) withGenerator(cmd *cobra.Command, call func(generator) error) (err error) {
	c, err := f.config()
	if err != nil {
		return err
	}
	if c.Store == "" && c.SecretFile != "" {
		keyring, err := f.keyring()
		if err != nil {
			return err
		}
		source, err := unleased(keyring.Codec())
		if err != nil {
			return err
		}
		fmt.Fprintln(cmd.ErrOrStderr(), "traceflake: warning: without a store the IDs begin at a random place, and uniqueness is only probabilistic")
		return call(generator{idgen.New(idgen.WithSource(source))})
	}
	c.Strict = c.Store != ""
	ids, err := c.Open(cmd.Context())
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), storeTimeout)
		defer cancel()
		if e := ids.Shutdown(ctx); e != nil {
			if errors.Is(err, errReported) {
				err = nil // exit code 2 takes precedence
			}
			err = errors.Join(err, e)
		}
	}()
	return call(generator{ids})
}

// unleased returns a source without a lease. Under the secret of a store the first places of a second
// are those that its processes use, so each second begins at a random place of all nodes.
func unleased(c *randflake.Codec) (*randflake.Generator, error) {
	now := time.Now()
	everything := randflake.Lease{Nodes: randflake.MaxNode + 1, Start: now.Add(-2 * time.Second), End: now.Add(30 * 24 * time.Hour)}
	return randflake.NewGenerator(c, everything, randflake.WithStart(func() uint64 {
		var place [8]byte
		entropy.Read(place[:])
		return binary.LittleEndian.Uint64(place[:])
	}))
}
