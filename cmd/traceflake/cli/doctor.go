package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel"

	"github.com/traceflake/traceflake/internal/await"
	"github.com/traceflake/traceflake/internal/redact"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/stores"
)

// finding is the result of one check.
type finding struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	Found string `json:"found"`
	// Fix tells what to do if the check failed.
	Fix string `json:"fix,omitempty"`
	// Note is set if there is nothing to check, only to know.
	Note bool `json:"note,omitempty"`
}

// text is a finding as lines of text.
func (f finding) text() string {
	if f.Note {
		return fmt.Sprintf("note   %-12s %s\n", f.Check, f.Found)
	}
	if f.OK {
		return fmt.Sprintf("ok     %-12s %s\n", f.Check, f.Found)
	}
	return fmt.Sprintf("WRONG  %-12s %s\n%-19s → %s\n", f.Check, f.Found, "", f.Fix)
}

// doctor is the command with its flags. It prints findings.
type doctor struct {
	*commonFlags
	clickhouse spansServer
	allFacts   bool // of the tables
	output     *string
	cmd        *cobra.Command
	first      string // the fix of the first check that failed
	err        error
}

func doctorCommand(f *commonFlags) *cobra.Command {
	d := &doctor{commonFlags: f}
	d.cmd = &cobra.Command{
		Use:   "doctor",
		Short: "Check the environment, the lease store and ClickHouse",
		Long: `doctor checks what a service would use: the environment, the secret, the lease
store, and ClickHouse if its address is set. For each check it prints the result and,
if there is a problem, how to fix it. It writes nothing. Each check ends within 5 s.
The exit code is 1 if a check fails.

Run doctor where the services run, with their environment.

The last line has the first thing to do.

With -o json each check is an object on a line of its own; fix is set if ok is false,
and "note":true if nothing was checked:
{"check":"secret","ok":false,"found":"fleet: …: no secret","fix":"set TRACEFLAKE_SECRET…"}`,
		Example: `  traceflake doctor
  traceflake doctor --store postgres://db/traceflake --secret-file secret -o json`,
		RunE: func(*cobra.Command, []string) error { return d.run() },
	}
	f.addStore(d.cmd.Flags(), "store to check")
	f.addSecret(d.cmd)
	d.clickhouse.addFlags(d.cmd.Flags())
	d.output = outputFlag(d.cmd)
	return d.cmd
}

func (d *doctor) run() error {
	defer otel.SetErrorHandler(otel.GetErrorHandler())
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		d.report("environment", "", err) // such as an unknown variable
	}))
	d.environment()
	if d.clickhouse.address() != "" {
		d.spans()
	}
	if d.first != "" && *d.output == "text" && errors.Is(d.err, errReported) {
		fmt.Fprintf(d.cmd.OutOrStdout(), "\nFirst, %s.\n", d.first)
	}
	return d.err
}

// note prints what there is to know.
func (d *doctor) note(check, found string) { d.print(finding{check, true, found, "", true}) }

// withFix returns an error with its fix.
func withFix(fix, format string, args ...any) error {
	return &lease.Error{Err: fmt.Errorf(format, args...), Fix: fix}
}

// report prints the result of a check, or its error and the fix, and reports whether it had no
// error. After an interruption it prints nothing.
func (d *doctor) report(check, found string, err error) (ok bool) {
	if d.cmd.Context().Err() != nil {
		d.err = errReported
		return false
	}
	f := finding{Check: check, OK: err == nil, Found: found}
	if err != nil {
		f.Fix = cmp.Or(lease.Fix(err), "see the message; if it is the server's, its log may have "+
			"more")
		f.Found = strings.TrimSuffix(err.Error(), "; "+f.Fix) // reports have it already
		d.first = cmp.Or(d.first, f.Fix)
		d.err = cmp.Or(d.err, errReported)
	}
	d.print(f)
	return f.OK
}

func (d *doctor) print(f finding) {
	err := errors.Join(show(d.cmd.OutOrStdout(), *d.output, f.text(), f), flush(d.cmd))
	if err != nil {
		d.err = err
	}
}

// check reports the result of a check.
func (d *doctor) check(name string, check func(context.Context) (found string, err error)) {
	found, err := within(d.cmd.Context(), check)
	d.report(name, found, err)
}

// checkTimeout limits each check.
const checkTimeout = 5 * time.Second

// within calls a check with the time limit, also if it hangs, as on a file system that does not
// answer.
func within[T any](ctx context.Context, check func(context.Context) (T, error)) (T, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	return await.Call(ctx, grace, check)
}

// limited returns a context with the time limit of a check.
func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, checkTimeout, fmt.Errorf("no response within %s: %w",
		shortly(checkTimeout), context.DeadlineExceeded))
}

// environment checks the settings, and with them the secret and the store.
func (d *doctor) environment() {
	c, err := d.config()
	if err == nil {
		err = c.Check()
	}
	found := "store " + redact.Address(c.Store)
	if c.Store == "" {
		found = "zero configuration: no store, and so no leases; IDs are ordered and not guessable"
	}
	if !d.report("environment", found, err) || c.Store == "" {
		return
	}
	s, err := stores.Open(c.Store)
	if err != nil {
		d.report("store", "", err)
		return
	}
	defer func() { _ = s.Close() }()
	storeCheck{d, openStore{s, c}}.run()
}
