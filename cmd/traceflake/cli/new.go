package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

--at generates IDs for records of that time, to the millisecond. With --key it derives
the ID from the time, the key and the first secret of the file or the store: every run
derives the same ID from the same time and key. A derived ID cannot be decoded.`,
		Example: `  traceflake new -n 1000
  traceflake new --span
  traceflake new --at 2021-05-06T07:08:09Z
  traceflake new --at 2026-05-06T07:08:09Z --key run/17 --secret-file secret`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			next, err := o.generator(cmd)
			if err != nil {
				return err
			}
			for range o.number {
				id, err := next()
				if err == nil {
					_, err = fmt.Fprintln(cmd.OutOrStdout(), id)
				}
				if err = cmp.Or(err, context.Cause(cmd.Context())); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&f.flags.Store, "store", "", "with --key, lease directory whose secret "+
		"is used: file:DIR (default $TRACEFLAKE_STORE)")
	f.addSecret(cmd)
	cmd.Flags().UintVarP(&o.number, "number", "n", 1, "how many IDs")
	cmd.Flags().StringVar(&o.at, "at", "", "generate IDs for records of this time, such as "+
		"2026-01-02T03:04:05Z")
	cmd.Flags().StringVar(&o.key, "key", "", "derive the ID of this key and the time of --at")
	cmd.Flags().BoolVar(&o.span, "span", false, "generate span IDs")
	return cmd
}

// newOptions are the flags of new.
type newOptions struct {
	*commonFlags
	number uint
	at     string
	key    string
	span   bool
}

// generator returns the function that generates the IDs.
func (o *newOptions) generator(cmd *cobra.Command) (func() (fmt.Stringer, error), error) {
	set := cmd.Flags().Changed
	at, err := time.Parse(time.RFC3339, o.at)
	switch {
	case set("at") && err != nil:
		return nil, fmt.Errorf("--at: %.60q is not a time such as 2026-01-02T03:04:05Z", o.at)
	case set("key") && (!set("at") || set("number")):
		return nil, errors.New("--key derives one ID, and needs --at with a time")
	case !set("key") && (set("secret-file") || set("store")):
		return nil, errors.New("--secret-file and --store are for --key: other IDs are generated " +
			"under a random secret")
	case !set("key") && set("at") && o.span:
		return nil, errors.New("--at is for trace IDs; a span ID always has the current time, " +
			"unless --key derives it")
	case set("key"):
		keyring, err := o.secrets()
		return func() (fmt.Stringer, error) {
			if o.span {
				return traceid.DeriveSpan(keyring.Codec(), at, o.key)
			}
			return traceid.DeriveTrace(keyring.Codec(), at, o.key)
		}, err
	}
	ids := idgen.New()
	return func() (fmt.Stringer, error) {
		if set("at") {
			return ids.NewTraceIDAt(at)
		}
		traceID, spanID := ids.NewIDs(cmd.Context())
		if o.span {
			return spanID, nil
		}
		return traceID, nil
	}, nil
}
