package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/traceid"
)

func newCommand(f *commonFlags) *cobra.Command {
	o := newOptions{commonFlags: f}
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Generate trace IDs",
		Long: `new generates trace IDs, one per line, under a random secret that is not kept.

--at generates IDs for records of that time. --at - reads times from standard input,
one per line, and prints an ID for each. It stops at the first line without a valid
time.

--deterministic derives each ID from a time, to the millisecond, and a key, with the
first secret of the file or the store: every run derives the same ID from the same time
and key. With --at -, the key follows the time and a tab on each line. The IDs cannot be
decoded.

` + timeHelp,
		Example: `  traceflake new -n 1000
  traceflake new --at 2021-05-06T07:08:09Z
  traceflake new --at - <times >ids
  traceflake new --at - --deterministic --secret-file secret <times-and-keys >ids
  traceflake new --deterministic --secret-file secret --at 2026-05-06T07:08:09Z --key run/17
  traceflake new --span`,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f.addStore(cmd.Flags(), "store that has its own secret, for --deterministic")
	f.addSecret(cmd)
	cmd.Flags().UintVarP(&o.number, "number", "n", 1, "how many IDs, for each time")
	cmd.Flags().StringVar(&o.at, "at", "now", "generate IDs for records of this time")
	cmd.Flags().BoolVar(&o.deterministic, "deterministic", false,
		"derive the IDs from times and keys")
	cmd.Flags().StringVar(&o.key, "key", "",
		"key from which --deterministic derives an ID, with --at")
	cmd.Flags().BoolVar(&o.span, "span", false, "generate span IDs")
	return cmd
}

// newOptions are the flags of new.
type newOptions struct {
	*commonFlags
	number        uint
	at            string
	key           string
	span          bool
	deterministic bool
}

// lines reports whether times are read from standard input.
func (o *newOptions) lines() bool { return o.at == "-" }

// check returns an error for flags that contradict each other.
func (o *newOptions) check(cmd *cobra.Command) error {
	timed := cmd.Flags().Changed("at")
	switch {
	case o.key != "" && (!o.deterministic || !timed || o.lines()):
		return errors.New("--key needs --deterministic and --at with a time")
	case o.span && timed && !o.deterministic:
		return errors.New("--at is for trace IDs; a span ID always has the current time")
	case o.deterministic && !timed:
		return errors.New("--deterministic needs a time: add --at TIME and --key, " +
			"or --at - to read times and keys from standard input")
	}
	return nil
}

// generate returns an ID for a time and a key.
type generate func(t time.Time, key string) (fmt.Stringer, error)

func (o *newOptions) run(cmd *cobra.Command) error {
	if err := o.check(cmd); err != nil {
		return err
	}
	id, err := o.generator(cmd)
	if err != nil {
		return err
	}
	write := func(text, key string) error {
		t, _, err := parseTime(text, time.Now())
		if err != nil {
			return err
		}
		for range o.number {
			made, err := id(t, key)
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), made)
			}
			if err = cmp.Or(err, context.Cause(cmd.Context())); err != nil {
				return err
			}
		}
		return nil
	}
	if !o.lines() {
		return write(o.at, o.key)
	}
	return eachLine(cmd, func(number int, text string) error {
		text, key, _ := strings.Cut(text, "\t")
		if err := write(text, key); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		return nil
	})
}

// generator returns the function that generates the IDs.
func (o *newOptions) generator(cmd *cobra.Command) (generate, error) {
	if o.deterministic {
		keyring, err := o.secrets(cmd)
		if err != nil {
			return nil, err
		}
		return func(t time.Time, key string) (fmt.Stringer, error) {
			if o.span {
				return traceid.DeriveSpan(keyring.Codec(), t, key)
			}
			return traceid.DeriveTrace(keyring.Codec(), t, key)
		}, nil
	}
	ids, timed := idgen.New(), cmd.Flags().Changed("at")
	return func(t time.Time, _ string) (fmt.Stringer, error) {
		if timed {
			return ids.NewTraceIDAt(t)
		}
		traceID, spanID := ids.NewIDs(cmd.Context())
		if o.span {
			return spanID, nil
		}
		return traceID, nil
	}, nil
}
