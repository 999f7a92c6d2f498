package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/setup"
)

func newCommand(f *flags) *cobra.Command {
	o := newOptions{flags: f}
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Generate trace IDs",
		Long: `new generates trace IDs, one per line. With a store the nodes are leased, and the IDs
are unique in the fleet. Without one, the secret is random and not kept; a secret file
then serves --deterministic only.

--at generates trace IDs for records of that time, which do not verify. With "-" it
reads times from standard input, one per line, and prints an ID for each. It stops at
the first line without a valid time.

--deterministic derives IDs with the first secret, of the file or the store, from the
time, to the millisecond, and from a key: the same two get the same trace ID, and with
--span the same span ID, in each run. The key is --key, or with --at - what follows a
tab on each line. It leases no node, and a secret does not decode the IDs.

` + timeHelp,
		Example: `  traceflake new -n 1000 --store file:/var/lib/traceflake/leases
  traceflake new --at 2021-05-06T07:08:09Z
  traceflake new --at - <times >ids
  traceflake new --at - --deterministic --secret-file secret <times-and-keys >ids
  traceflake new --deterministic --secret-file secret --at 2026-05-06T07:08:09Z --key run/17
  traceflake new --span`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.numbered = cmd.Flags().Changed("number")
			if err := o.check(); err != nil {
				return err
			}
			return o.run(cmd)
		},
	}
	o.addFlags(cmd)
	return cmd
}

// newOptions are the flags of new.
type newOptions struct {
	*flags
	number        int
	numbered      bool // number was given
	at            string
	key           string
	span          bool
	deterministic bool
}

func (o *newOptions) addFlags(cmd *cobra.Command) {
	o.addStore(cmd.Flags(), "store to lease nodes from")
	o.addSecret(cmd)
	cmd.Flags().IntVarP(&o.number, "number", "n", 1, "how many IDs")
	cmd.Flags().StringVar(&o.at, "at", "", "generate IDs for records of this time")
	cmd.Flags().BoolVar(&o.deterministic, "deterministic", false,
		"derive the IDs from times and keys")
	cmd.Flags().StringVar(&o.key, "key", "", "what --deterministic derives an ID from, with --at")
	cmd.Flags().BoolVar(&o.span, "span", false, "generate span IDs")
}

// lines reports whether times are read from standard input.
func (o *newOptions) lines() bool { return o.at == "-" }

// check returns an error for flags that contradict each other.
func (o *newOptions) check() error {
	switch {
	case o.number < 1:
		return fmt.Errorf("-n: %d is less than 1", o.number)
	case o.lines() && o.numbered:
		return errors.New("-n: with --at - there is one ID for each line of standard input")
	case o.key != "" && (!o.deterministic || o.lines()):
		return errors.New("--key needs --deterministic and --at with a time")
	case !o.deterministic && o.at != "" && o.span:
		return errors.New("--at is for trace IDs; a span ID always has the current time")
	case !o.deterministic:
		return nil
	case o.at == "":
		return errors.New("--deterministic needs a time: add --at TIME and --key, " +
			"or --at - to read times and keys from standard input")
	case o.number > 1:
		return errors.New("-n: --deterministic has one ID for each time and key")
	}
	return nil
}

func (o *newOptions) run(cmd *cobra.Command) error {
	switch {
	case o.deterministic:
		return o.derive(cmd)
	case o.lines():
		return o.withIDs(cmd, func(ids *setup.IDs) error {
			return eachTime(cmd, func(t time.Time, _ string) error {
				return writeNew(cmd, ids,
					func() (fmt.Stringer, error) { return ids.NewTraceIDAt(t) })
			})
		})
	}
	generate, err := o.generator(cmd.Context())
	if err != nil {
		return err
	}
	return o.withIDs(cmd, func(ids *setup.IDs) (err error) {
		for i := 0; i < o.number && err == nil; i++ {
			err = writeNew(cmd, ids, func() (fmt.Stringer, error) { return generate(ids) })
		}
		return err
	})
}

// generator returns what generates an ID of the kind that the flags ask for.
func (o *newOptions) generator(
	ctx context.Context,
) (func(ids *setup.IDs) (fmt.Stringer, error), error) {
	if o.span {
		return func(ids *setup.IDs) (fmt.Stringer, error) {
			return ids.NewSpanID(ctx, trace.TraceID{}), nil
		}, nil
	}
	if o.at == "" {
		return func(ids *setup.IDs) (fmt.Stringer, error) {
			id, _ := ids.NewIDs(ctx)
			return id, nil
		}, nil
	}
	t, err := o.time()
	return func(ids *setup.IDs) (fmt.Stringer, error) { return ids.NewTraceIDAt(t) }, err
}

// time returns the time of --at.
func (o *newOptions) time() (time.Time, error) {
	t, err := parseTime(o.at, time.Now())
	if err != nil {
		err = fmt.Errorf("--at: %w", err)
	}
	return t, err
}

// withIDs calls generate with a generator of the configuration, and then shuts that down.
func (o *newOptions) withIDs(cmd *cobra.Command, generate func(*setup.IDs) error) (err error) {
	c, err := o.config()
	if err != nil {
		return err
	}
	c.Strict = c.Store != ""
	ids, err := c.Open(cmd.Context())
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), storeTimeout)
		defer cancel()
		err = errors.Join(err, ids.Shutdown(ctx))
	}()
	return generate(ids)
}

// writeNew writes a new ID. It fails where a service would use a random one.
func writeNew(
	cmd *cobra.Command, ids *setup.IDs, generate func() (fmt.Stringer, error),
) error {
	id, err := generate()
	switch {
	case err != nil:
		return err
	case ids.Fallbacks() > 0:
		return errors.New("no leased node to generate IDs on; the store's error is above")
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), id)
	return cmp.Or(err, context.Cause(cmd.Context()))
}
