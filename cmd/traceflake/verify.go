package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/identify"
	"github.com/traceflake/traceflake/traceid"
)

func verifyCommand(f *flags) *cobra.Command {
	var maxAge, skew, tolerance time.Duration
	var quiet bool
	cmd := &cobra.Command{
		Use:   "verify [ID…]",
		Short: "Say whether trace IDs are this fleet's",
		Long: `verify says for each trace ID whether its halves agree under one of the secrets
and its time is plausible. It takes what inspect takes; of headers it verifies
the trace ID. The exit code is 0 when all are verified, else 1.

It is a hint of origin, not authentication: an ID that was seen can be sent
again. IDs of clients, of the random fallback and of old records do not verify.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			keyring, err := f.keyring(cmd)
			if err != nil {
				return err
			}
			if keyring == nil {
				return errNoSecret
			}
			if maxAge <= 0 || skew < 0 || tolerance < 0 {
				return fmt.Errorf("--max-age must be more than 0, --skew and --tolerance not less")
			}
			v := traceid.NewVerifier(keyring, traceid.WithMaxAge(maxAge), traceid.WithSkew(skew), traceid.WithTolerance(tolerance))
			none, failed := true, false
			err = eachLine(cmd, args, func(number int, line string) error {
				none = false
				text, verified := identify.TraceIDOf(line), false
				var id trace.TraceID
				if id, err = trace.TraceIDFromHex(strings.ToLower(strings.ReplaceAll(text, "-", ""))); err == nil {
					verified = v.Verify(id)
				} else {
					fmt.Fprintf(cmd.ErrOrStderr(), "traceflake: %s%.60q has no trace ID of 32 hex digits that are not all zero\n", place(number), strings.TrimSpace(line))
				}
				failed = failed || !verified
				if quiet {
					return nil
				}
				answer := "not verified"
				if verified {
					answer = "verified"
				}
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\t%s\n", text, answer)
				return err
			})
			switch {
			case err != nil:
				return err
			case none:
				return fmt.Errorf("no IDs to verify")
			case failed:
				return errReported
			}
			return nil
		},
	}
	cmd.Flags().DurationVar(&maxAge, "max-age", 24*time.Hour, "how old an ID may be")
	cmd.Flags().DurationVar(&skew, "skew", time.Minute, "how far in the future an ID may lie")
	cmd.Flags().DurationVar(&tolerance, "tolerance", 2*time.Second, "by how much the halves may disagree")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "only the exit code")
	return cmd
}
