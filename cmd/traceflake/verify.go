package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/identify"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

func verifyCommand(f *flags) *cobra.Command {
	var maxAge, skew, tolerance time.Duration
	var output string
	var quiet bool
	outputs := []string{"text", "json"}
	cmd := &cobra.Command{
		Use:   "verify [ID…]",
		Short: "Check whether trace IDs were made by this fleet",
		Long: `verify reports for each trace ID whether its halves agree under one of the
secrets and its time is plausible. It reads the same input as inspect; of headers
it verifies the trace ID. The exit code is 0 if all are verified, and 1
otherwise, with the reason after the ID. Without a secret file, the secret of a
bolt file can be used.

It is a hint of origin, not authentication: an ID can be replayed. IDs of
clients, of the random fallback and of old records do not verify.

With -o json each ID is an object on its own line. gzip input is decompressed.`,
		Example: `  traceflake verify --secret-file secret 1950fb0f8880000086cdcca4ab608495
  traceflake verify --store bolt:/var/lib/traceflake/leases.db <ids
  traceflake verify --secret-file secret -o json --max-age 720h <ids.gz`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkChoice("output", output, outputs...); err != nil {
				return err
			}
			if maxAge <= 0 || skew < 0 || tolerance < 0 {
				return fmt.Errorf("--max-age must be positive, --skew and --tolerance must not be negative")
			}
			keyring, err := f.verifying(cmd)
			if err != nil {
				return err
			}
			check := checker{maxAge, skew, traceid.NewVerifier(keyring,
				traceid.WithMaxAge(maxAge), traceid.WithSkew(skew), traceid.WithTolerance(tolerance))}
			write := verdicts(cmd, output)
			if quiet {
				write = func(verdict) error { return nil }
				cmd.SetErr(io.Discard)
			}
			none, failed := true, false
			err = eachLine(cmd, args, func(number int, line string) error {
				none = false
				this := verdict{Line: number, ID: identify.TraceIDOf(line)}
				id, err := trace.TraceIDFromHex(strings.ToLower(strings.ReplaceAll(this.ID, "-", "")))
				if err == nil {
					this.Verified, this.Reason = check.verify(id, time.Now())
				} else {
					this.Error = fmt.Sprintf("%.60q has no trace ID of 32 hex digits that are not all zero", strings.TrimSpace(line))
					fmt.Fprintf(cmd.ErrOrStderr(), "traceflake: %s%s\n", place(number), this.Error)
				}
				failed = failed || !this.Verified
				return write(this)
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
	f.addStore(cmd, "store whose own secret verifies IDs")
	choice(cmd, &output, "output", "o", "lines of text or JSON", outputs...)
	durationFlag(cmd, &maxAge, "max-age", 24*time.Hour, "how old an ID may be")
	durationFlag(cmd, &skew, "skew", time.Minute, "how far in the future an ID may lie")
	durationFlag(cmd, &tolerance, "tolerance", traceid.DefaultTolerance, "by how much the halves may disagree")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print nothing, set only the exit code")
	for _, name := range []string{"max-age", "skew", "tolerance"} {
		complete(cmd, name, "2s", "1m", "1h", "24h", "720h")
	}
	return cmd
}

// checker verifies IDs and says why one is not verified.
type checker struct {
	maxAge, skew time.Duration
	verifier     *traceid.Verifier
}

func (c checker) verify(id trace.TraceID, now time.Time) (ok bool, reason string) {
	if c.verifier.Verify(id) {
		return true, ""
	}
	t := traceid.Time(id)
	at := t.UTC().Format(time.RFC3339)
	switch age := now.Sub(t); {
	case age > c.maxAge:
		return false, fmt.Sprintf("age: its time is %s, more than %s ago (--max-age)", at, c.maxAge)
	case -age > c.skew:
		return false, fmt.Sprintf("future: its time is %s, more than %s ahead (--skew)", at, c.skew)
	}
	return false, fmt.Sprintf("halves: under none of the secrets does the low half have the time of the high half, %s", at)
}

// verifying returns the secrets with which IDs are verified. It opens the store only if the
// store's own secret is needed.
func (f *flags) verifying(cmd *cobra.Command) (*randflake.Keyring, error) {
	k, err := f.keyring()
	if err != nil || k != nil {
		return k, err
	}
	s, err := f.openStore(cmd.Context(), reading)
	if errors.Is(err, errNoStore) {
		return nil, errNoSecret
	}
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if k, err = f.decoding(s); err == nil && k == nil {
		err = errNoOwnSecret
	}
	return k, err
}

// verdict is the result of verify for an ID.
type verdict struct {
	Line     int    `json:"line,omitempty"`
	ID       string `json:"id"`
	Verified bool   `json:"verified"`
	Reason   string `json:"reason,omitempty"` // why it is not verified
	Error    string `json:"error,omitempty"`
}

// verdicts returns a function that writes verdicts in a format.
func verdicts(cmd *cobra.Command, format string) func(verdict) error {
	out := cmd.OutOrStdout()
	if format == "json" {
		enc := json.NewEncoder(out)
		return func(v verdict) error { return enc.Encode(v) }
	}
	verified, refused := paint(cmd, green, "verified"), paint(cmd, red, "not verified")
	return func(v verdict) error {
		answer := verified
		if !v.Verified {
			answer = refused
			if v.Reason != "" {
				answer += "\t" + v.Reason
			}
		}
		_, err := io.WriteString(out, v.ID+"\t"+answer+"\n")
		return err
	}
}
