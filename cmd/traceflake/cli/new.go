package cli

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/internal/entropy"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/setup"
)

func newCommand(f *flags) *cobra.Command {
	var n int
	var at string
	var span bool
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Generate trace IDs",
		Long: `new generates trace IDs, or span IDs with --span, one per line.

With a store the nodes are leased, and the IDs are unique in the fleet. With only
a secret file the IDs decode and verify, but uniqueness is only probabilistic. With
neither, the secret is random and not kept.

--at generates trace IDs for records of that time; they decode but do not verify. With
"-" it reads times from standard input, one per line, and prints an ID for each.
` + timeHelp,
		Example: `  traceflake new -n 1000 --store bolt:/var/lib/traceflake/leases.db
  traceflake new --at 2021-05-06T07:08:09Z --secret-file secret
  traceflake new --span`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			switch {
			case n < 1:
				return fmt.Errorf("-n: %d is less than 1", n)
			case at != "" && span:
				return errors.New("--at is for trace IDs; a span ID always has the current time")
			}
			var t time.Time
			if at != "" && at != "-" {
				if t, err = parseTime(at, time.Now()); err != nil {
					return fmt.Errorf("--at: %w", err)
				}
			}
			g, stop, err := f.generator(cmd)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, stop()) }()
			out := cmd.OutOrStdout()
			if at == "-" {
				return g.each(cmd)
			}
			for range n {
				if err := context.Cause(cmd.Context()); err != nil {
					return err
				}
				id, err := g.one(cmd.Context(), t, span)
				if err != nil {
					return err
				}
				if _, err := fmt.Fprintln(out, id); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f.addStore(cmd, cmd.Flags(), "store to lease nodes from")
	f.addSecret(cmd)
	cmd.Flags().IntVarP(&n, "number", "n", 1, "how many IDs")
	cmd.Flags().StringVar(&at, "at", "", "generate IDs for records of this time")
	cmd.Flags().BoolVar(&span, "span", false, "generate span IDs")
	return cmd
}

// each prints an ID for each time on standard input.
func (g generator) each(cmd *cobra.Command) error {
	read := reading{idle: func() error { return nil }}
	read.each = func(number int, line string) error {
		t, err := parseTime(strings.TrimSpace(line), time.Now())
		var id trace.TraceID
		if err == nil {
			id, err = g.at(t)
		}
		if err != nil {
			return fmt.Errorf("%s%w", place(number), err)
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), id)
		return err
	}
	return read.read(cmd, nil)
}

// generator generates IDs. It fails where a service would use random IDs.
type generator struct{ ids }

// ids is implemented by setup.IDs, and by idgen.Generator without leases.
type ids interface {
	NewIDs(context.Context) (trace.TraceID, trace.SpanID)
	NewSpanID(context.Context, trace.TraceID) trace.SpanID
	NewTraceIDAt(time.Time) (trace.TraceID, error)
	Fallbacks() int64
}

// errFallback follows the Keeper's report of why there is no lease.
var errFallback = errors.New("no leased node to generate IDs on; the store's answer is above")

func (g generator) one(ctx context.Context, at time.Time, span bool) (id fmt.Stringer, err error) {
	switch {
	case !at.IsZero():
		return g.at(at)
	case span:
		id = g.NewSpanID(ctx, trace.TraceID{})
	default:
		id, _ = g.NewIDs(ctx)
	}
	return id, g.fallback()
}

func (g generator) at(t time.Time) (trace.TraceID, error) {
	id, err := g.NewTraceIDAt(t)
	if err == nil {
		err = g.fallback()
	}
	return id, err
}

// fallback returns an error if an ID was random.
func (g generator) fallback() error {
	if g.Fallbacks() > 0 {
		return errFallback
	}
	return nil
}

// generator returns a generator configured by the flags and the environment, and a function that
// closes it.
func (f *flags) generator(cmd *cobra.Command) (generator, func() error, error) {
	c, err := f.config()
	if err != nil {
		return generator{}, nil, err
	}
	if c.Store == "" && c.SecretFile != "" {
		keyring, err := f.keyring()
		if err != nil {
			return generator{}, nil, err
		}
		source, err := unleased(keyring.Codec())
		if err != nil {
			return generator{}, nil, err
		}
		fmt.Fprintln(cmd.ErrOrStderr(), "traceflake: warning: without a store the IDs begin at a random place, and uniqueness is only probabilistic")
		return generator{idgen.New(idgen.WithSource(source))}, func() error { return nil }, nil
	}
	if err := exists(cmd.Context(), c); err != nil {
		return generator{}, nil, err
	}
	ids, err := c.Open(cmd.Context())
	if err != nil {
		return generator{}, nil, err
	}
	return generator{ids}, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), storeTimeout)
		defer cancel()
		return ids.Shutdown(ctx)
	}, nil
}

const storeTimeout = 10 * time.Second

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

// exists returns an error if the store of c does not exist and does not create itself.
func exists(ctx context.Context, c setup.Config) error {
	if c.Store == "" {
		return nil
	}
	s, err := driver.Open(c.Store)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	defer closeStore(s)
	if _, embedded := s.(driver.Embedded); embedded {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if _, err := s.Describe(ctx); lease.Permanent(err) {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}
