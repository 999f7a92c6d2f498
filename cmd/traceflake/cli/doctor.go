package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/setup"
)

// finding is the result of one check.
type finding struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	Found string `json:"found"`
	// Fix is what to do if it is not OK.
	Fix string `json:"fix,omitempty"`
}

// text is a finding as lines of text.
func (f finding) text() string {
	line := fmt.Sprintf("%-6s %-12s %s\n", map[bool]string{true: "ok", false: "WRONG"}[f.OK],
		f.Check, f.Found)
	if f.Fix != "" {
		line += fmt.Sprintf("%-19s → %s\n", "", f.Fix)
	}
	return line
}

// doctor is the command with its flags. It prints findings.
type doctor struct {
	*flags
	clickhouse server
	output     *string
	cmd        *cobra.Command
	err        error
}

func doctorCommand(f *flags) *cobra.Command {
	d := &doctor{flags: f}
	d.cmd = &cobra.Command{
		Use:   "doctor",
		Short: "Check the environment, the lease store and ClickHouse",
		Long: `doctor checks what a service would use: the environment, the secret, the lease
store, and ClickHouse if it has an address. It prints a line for each check, and how
to fix a problem. It writes nothing. Each check ends within 5 s. The exit code is 1 if
something is wrong.

Run it where the services run, with their environment.

With -o json each check is an object on a line of its own; fix is set if ok is false:
{"check":"secret","ok":false,"found":"no secret file","fix":"set TRACEFLAKE_SECRET_FILE …"}`,
		Example: `  traceflake doctor
  traceflake doctor --store postgres://db/traceflake --secret-file secret -o json`,
		RunE: func(*cobra.Command, []string) error { return d.run() },
	}
	f.addStore(d.cmd.Flags(), "store to check")
	f.addSecret(d.cmd)
	d.cmd.Flags().StringVar(&d.clickhouse.dsn, "dsn", "", "ClickHouse to check (default $"+
		clickhouseVar+")")
	d.output = outputFlag(d.cmd)
	return d.cmd
}

func (d *doctor) run() error {
	d.environment()
	if d.clickhouse.address() != "" {
		d.spans()
	}
	return d.err
}

func (d *doctor) say(f finding) {
	if !f.OK {
		d.err = cmp.Or(d.err, errReported)
	}
	if err := errors.Join(show(d.cmd, *d.output, f.text, f), flush(d.cmd)); err != nil {
		d.err = err
	}
}

func (d *doctor) ok(check, format string, args ...any) {
	d.say(finding{Check: check, OK: true, Found: fmt.Sprintf(format, args...)})
}

func (d *doctor) wrong(check, fix, format string, args ...any) {
	d.say(finding{Check: check, Found: fmt.Sprintf(format, args...), Fix: fix})
}

// failed reports an error with the advice that fits it.
func (d *doctor) failed(check string, err error) { d.wrong(check, advise(err), "%v", err) }

// checkTimeout limits each check.
const checkTimeout = 5 * time.Second

// within calls a check and returns its error, or that of the time limit: some clients obey a
// context only between requests.
func within[T any](ctx context.Context, check func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := check(ctx)
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-done: // whose text says more
		return r.value, r.err
	case <-time.After(200 * time.Millisecond):
		var none T
		return none, fmt.Errorf("no response within %s: %w", shortly(checkTimeout), ctx.Err())
	}
}

// environment checks the settings, and with them the secret and the store.
func (d *doctor) environment() {
	if unknown := setup.Unknown(os.Environ()); len(unknown) > 0 {
		d.wrong("environment", "correct the name; docs/configuration.md lists those that exist",
			"nothing reads %s", strings.Join(unknown, ", "))
	}
	c, err := d.config()
	if err == nil {
		err = c.Check()
	}
	switch {
	case err != nil:
		d.wrong("environment", "correct the value", "%v", err)
		return
	case c.Store == "":
		d.ok("environment",
			"zero configuration: no store, and so no leases; IDs are ordered and not guessable")
		return
	}
	d.ok("environment", "store %s", c.Address())
	s, err := driver.Open(c.Store)
	if err != nil {
		d.failed("store", err)
		return
	}
	defer closeStore(s)
	at := storeCheck{doctor: d, settings: c, Store: s}
	at.store(at.secret())
}
