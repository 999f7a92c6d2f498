package cli

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/lease/fleet"
	"github.com/traceflake/traceflake/randflake"
)

func newCommand(f *commonFlags) *cobra.Command {
	o := newOptions{commonFlags: f}
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Generate trace IDs",
		Long: `new generates trace IDs, one per line. With a store, new leases nodes, and the IDs
are unique in the fleet. Without a store and a secret file, the IDs are generated under
a random secret that is not kept.

--at generates trace IDs for records of that time. They do not verify. --at - reads
times from standard input, one per line, and prints an ID for each. It stops at the
first line without a valid time.

--deterministic derives each ID from a time, to the millisecond, and a key, with the
first secret of the file or the store: every run derives the same ID from the same time
and key. With --at -, the key follows the time and a tab on each line. --deterministic
leases no node, and its IDs cannot be decoded.

` + timeHelp,
		Example: `  traceflake new -n 1000 --store file:/var/lib/traceflake/leases
  traceflake new --at 2021-05-06T07:08:09Z
  traceflake new --at - <times >ids
  traceflake new --at - --deterministic --secret-file secret <times-and-keys >ids
  traceflake new --deterministic --secret-file secret --at 2026-05-06T07:08:09Z --key run/17
  traceflake new --span`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
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
	*commonFlags
	number        int
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
	cmd.Flags().StringVar(&o.key, "key", "",
		"key from which --deterministic derives an ID, with --at")
	cmd.Flags().BoolVar(&o.span, "span", false, "generate span IDs")
}

// lines reports whether times are read from standard input.
func (o *newOptions) lines() bool { return o.at == "-" }

// check returns an error for flags that contradict each other.
func (o *newOptions) check(cmd *cobra.Command) error {
	if err := needs(cmd, "key", "--deterministic and --at with a time",
		o.deterministic && !o.lines()); err != nil {
		return err
	}
	switch {
	case o.number < 1:
		return fmt.Errorf("-n: %d is less than 1", o.number)
	case o.lines() && cmd.Flags().Changed("number"):
		return errors.New("-n: with --at - there is one ID for each line of standard input")
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

// generate returns an ID for a time and a key.
type generate func(t time.Time, key string) (fmt.Stringer, error)

func (o *newOptions) run(cmd *cobra.Command) error {
	var at time.Time
	if o.at != "" && !o.lines() {
		var err error
		if at, err = parseTime(o.at, time.Now()); err != nil {
			return fmt.Errorf("--at: %w", err)
		}
	}
	if !o.deterministic {
		return o.lease(cmd, at)
	}
	keyring, err := o.secrets(cmd)
	if err != nil {
		return err
	}
	return o.write(cmd, at, func(t time.Time, key string) (fmt.Stringer, error) {
		return derived(keyring.Codec(), t, key, o.span)
	})
}

// lease generates IDs as a service does, and gives its lease back.
func (o *newOptions) lease(cmd *cobra.Command, at time.Time) (err error) {
	c, err := o.config()
	switch {
	case err != nil:
		return err
	case c.Store == "" && c.SecretFile != "":
		return errors.New("a secret file without a store: give --store or TRACEFLAKE_STORE to " +
			"lease nodes, or --deterministic, or leave out --secret-file and " +
			"TRACEFLAKE_SECRET_FILE")
	}
	ids, err := fleet.Config{Store: c.Store, SecretFile: c.SecretFile, TTL: c.TTL,
		Strict: c.Store != ""}.Open(cmd.Context())
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), storeTimeout)
		defer cancel()
		err = errors.Join(err, ids.Shutdown(ctx))
	}()
	return o.write(cmd, at, o.fromIDs(cmd.Context(), ids))
}

// fromIDs returns a function that fails where a service would use a random ID. Since a lease has a
// limited number of IDs for each second, it waits if they are a second ahead of the clock.
func (o *newOptions) fromIDs(ctx context.Context, ids *fleet.IDs) generate {
	codec := ids.Keyring().Codec() // nil in zero configuration, which has no limit
	return func(t time.Time, _ string) (id fmt.Stringer, err error) {
		var traceID trace.TraceID
		low := traceID[8:]
		switch {
		case o.span:
			span := ids.NewSpanID(ctx, traceID)
			id, low = span, span[:]
		case o.at != "":
			traceID, err = ids.NewTraceIDAt(t)
			id = traceID
		default:
			traceID, _ = ids.NewIDs(ctx)
			id = traceID
		}
		if err == nil && ids.Fallbacks() > 0 {
			err = cmp.Or(context.Cause(ctx), errNoLease)
		}
		if err == nil && codec != nil {
			at := codec.Decode(randflake.ID(binary.BigEndian.Uint64(low))).Time
			sleep(ctx, time.Until(at)-time.Second)
		}
		return id, err
	}
}

// sleep sleeps for d, but not after the end of ctx.
func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

var errNoLease = errors.New("no leased node to generate IDs on; the store's error is above")

// write writes the IDs of a time, or an ID for each time on standard input.
func (o *newOptions) write(cmd *cobra.Command, at time.Time, id generate) error {
	one := func(t time.Time, key string) error {
		text, err := id(t, key)
		if err == nil {
			_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
		}
		return cmp.Or(err, context.Cause(cmd.Context()))
	}
	if o.lines() {
		return eachTime(cmd, one)
	}
	for range o.number {
		if err := one(at, o.key); err != nil {
			return err
		}
	}
	return nil
}

// eachTime calls write for each line of standard input: a time and, after a tab, the record's key.
func eachTime(cmd *cobra.Command, write func(t time.Time, key string) error) error {
	return eachLine(cmd, func(number int, text string, problem error) error {
		text, key, _ := strings.Cut(text, "\t")
		t, err := parseTime(text, time.Now())
		if err = cmp.Or(problem, err); err == nil {
			err = write(t, key)
		}
		if err != nil {
			err = fmt.Errorf("line %d: %w", number, err)
		}
		return err
	})
}
