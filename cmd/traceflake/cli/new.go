package cli

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/setup"
	"github.com/traceflake/traceflake/traceid"
)

func newCommand(f *flags) *cobra.Command {
	var n int
	var at string
	var span, deterministic bool
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Generate trace IDs",
		Long: `new generates trace IDs, one per line. With a store the nodes are leased, and the IDs
are unique in the fleet. Without one, the secret is random and not kept; a secret file
then serves --deterministic only.

--at generates trace IDs for records of that time, which do not verify. With "-" it
reads times from standard input, one per line, and prints an ID for each. It stops at
the first line without a valid time.

--deterministic derives these IDs with the first secret, of the file or the store: a line
with the same time, to the millisecond, and the same key after a tab gets the same ID in
each run. It leases no node, and a secret does not decode the IDs.

` + timeHelp,
		Example: `  traceflake new -n 1000 --store bolt:/var/lib/traceflake/leases.db
  traceflake new --at 2021-05-06T07:08:09Z
  traceflake new --at - <times >ids
  traceflake new --at - --deterministic --secret-file secret <times-and-keys >ids
  traceflake new --span`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			generate := func(ids *setup.IDs) (fmt.Stringer, error) {
				id, _ := ids.NewIDs(cmd.Context())
				return id, nil
			}
			switch {
			case n < 1:
				return fmt.Errorf("-n: %d is less than 1", n)
			case at == "-" && cmd.Flags().Changed("number"):
				return errors.New("-n: with --at - there is one ID for each line of standard input")
			case deterministic && at != "-":
				return errors.New("--deterministic reads times and keys from standard input: add --at -")
			case at != "" && span:
				return errors.New("--at is for trace IDs; a span ID always has the current time")
			case span:
				generate = func(ids *setup.IDs) (fmt.Stringer, error) {
					return ids.NewSpanID(cmd.Context(), trace.TraceID{}), nil
				}
			case at != "" && at != "-":
				t, err := parseTime(at, time.Now())
				if err != nil {
					return fmt.Errorf("--at: %w", err)
				}
				generate = func(ids *setup.IDs) (fmt.Stringer, error) { return ids.NewTraceIDAt(t) }
			}
			if deterministic {
				keyring, err := f.verifying(cmd)
				if err != nil {
					return err
				}
				return eachTime(cmd, func(t time.Time, key string) error { return writeDerived(cmd, keyring, t, key) })
			}
			c, err := f.config()
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
			if at == "-" {
				return eachTime(cmd, func(t time.Time, _ string) error {
					return writeNew(cmd, ids, func(ids *setup.IDs) (fmt.Stringer, error) { return ids.NewTraceIDAt(t) })
				})
			}
			for i := 0; i < n && err == nil; i++ {
				err = writeNew(cmd, ids, generate)
			}
			return err
		},
	}
	f.addStore(cmd.Flags(), "store to lease nodes from")
	f.addSecret(cmd)
	cmd.Flags().IntVarP(&n, "number", "n", 1, "how many IDs")
	cmd.Flags().StringVar(&at, "at", "", "generate IDs for records of this time")
	cmd.Flags().BoolVar(&deterministic, "deterministic", false, "derive the IDs of --at - from times and keys")
	cmd.Flags().BoolVar(&span, "span", false, "generate span IDs")
	return cmd
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

// writeDerived writes the ID that the first secret gives to a record of that time with that key.
// The 87 bits after the time come from HMAC-SHA256.
func writeDerived(cmd *cobra.Command, k *randflake.Keyring, t time.Time, key string) error {
	if key == "" {
		return errors.New("--deterministic needs a tab and the record's key after each time, so that records of one millisecond differ")
	}
	secret, least := k.Codec().Derive("backfill"), traceid.Min(t)
	mac := hmac.New(sha256.New, secret[:])
	mac.Write(least[:8])
	mac.Write([]byte(key))
	sum := mac.Sum(nil)
	id, err := traceid.New(t, binary.BigEndian.Uint32(sum[4:])&traceid.MaxSequence, randflake.ID(max(binary.BigEndian.Uint64(sum[8:]), 1)))
	if err == nil {
		_, err = fmt.Fprintln(cmd.OutOrStdout(), id)
	}
	return err
}

// writeNew writes a new ID. It fails where a service would use a random one.
func writeNew(cmd *cobra.Command, ids *setup.IDs, generate func(*setup.IDs) (fmt.Stringer, error)) error {
	id, err := generate(ids)
	switch {
	case err != nil:
		return err
	case ids.Fallbacks() > 0:
		return errors.New("no leased node to generate IDs on; the store's error is above")
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), id)
	return cmp.Or(err, context.Cause(cmd.Context()))
}
