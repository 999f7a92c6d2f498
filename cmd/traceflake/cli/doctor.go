package cli

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
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

func doctorCommand(f *flags) *cobra.Command {
	var server server
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the environment, the lease store and ClickHouse",
		Long: `doctor checks what a service would use: the environment, the secret, the lease
store, and ClickHouse if it has an address. It prints a line for each check, and how
to fix a problem. It writes nothing. The exit code is 1 if something is wrong.

Run it where the services run, with their environment.

With -o json each check is an object on a line of its own; fix is set if ok is false:
{"check":"secret","ok":false,"found":"no secret file","fix":"set TRACEFLAKE_SECRET_FILE …"}`,
		Example: `  traceflake doctor
  traceflake doctor --store postgres://db/traceflake --secret-file secret -o json`,
	}
	f.addStore(cmd.Flags(), "store to check")
	f.addSecret(cmd)
	cmd.Flags().StringVar(&server.dsn, "dsn", "", "ClickHouse to check (default $"+clickhouseVar+")")
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		d := doctor{cmd: cmd, output: *output}
		d.environment(f)
		if server.address() != "" {
			d.clickhouse(&server)
		}
		return d.err
	}
	return cmd
}

// doctor prints findings.
type doctor struct {
	cmd    *cobra.Command
	output string
	err    error
}

func (d *doctor) say(f finding) {
	if !f.OK {
		d.err = cmp.Or(d.err, errReported)
	}
	if err := errors.Join(show(d.cmd, d.output, f.text, f), flush(d.cmd)); err != nil {
		d.err = err
	}
}

// text is a finding as lines of text.
func (f finding) text() string {
	line := fmt.Sprintf("%-6s %-12s %s\n", map[bool]string{true: "ok", false: "WRONG"}[f.OK], f.Check, f.Found)
	if f.Fix != "" {
		line += fmt.Sprintf("%-19s → %s\n", "", f.Fix)
	}
	return line
}

func (d *doctor) ok(check, format string, args ...any) {
	d.say(finding{Check: check, OK: true, Found: fmt.Sprintf(format, args...)})
}

func (d *doctor) wrong(check, fix, format string, args ...any) {
	d.say(finding{Check: check, Found: fmt.Sprintf(format, args...), Fix: fix})
}

// environment checks the settings, and with them the secret and the store.
func (d *doctor) environment(f *flags) {
	if unknown := setup.Unknown(os.Environ()); len(unknown) > 0 {
		d.wrong("environment", "correct the name; docs/configuration.md lists those that exist", "nothing reads %s", strings.Join(unknown, ", "))
	}
	c, err := f.config()
	if err == nil {
		err = c.Check()
	}
	switch {
	case err != nil:
		d.wrong("environment", "correct the value", "%v", err)
		return
	case c.Store == "":
		d.ok("environment", "zero configuration: no store, and so no leases; IDs are ordered and not guessable")
		return
	}
	d.ok("environment", "store %s", c.Address())
	s, err := driver.Open(c.Store)
	if err != nil {
		d.wrong("store", "correct "+setup.StoreVar, "%v", err)
		return
	}
	defer closeStore(s)
	ctx, cancel := context.WithTimeout(d.cmd.Context(), 2*storeTimeout)
	defer cancel()
	d.store(ctx, c, s, d.secret(ctx, c, s))
}

// secret checks the secret that a service would use. It returns nil if there is none.
func (d *doctor) secret(ctx context.Context, c setup.Config, s driver.Store) *randflake.Codec {
	if own, embedded := s.(driver.Embedded); embedded {
		codec, err := own.Codec(ctx)
		switch {
		case c.SecretFile != "":
			d.wrong("secret", "unset "+setup.SecretFileVar, "the file of the store has a secret of its own")
		case err == nil:
			d.ok("secret", "the file's own")
		case !errors.Is(err, lease.ErrNoStore):
			d.wrong("secret", "move the file away: the first service creates another one, with another secret", "%v", err)
		}
		return codec
	}
	err := errors.New("no secret file")
	var k *randflake.Keyring
	if c.SecretFile != "" {
		k, err = setup.LoadKeyring(c.SecretFile) // which reports a file that every user can read
	}
	if err != nil {
		d.wrong("secret", "set "+setup.SecretFileVar+" to the file that `traceflake lease create` wrote", "%v", err)
		return nil
	}
	d.ok("secret", "%s, secrets: %d; the first one is in use", c.SecretFile, len(k.Codecs()))
	return k.Codec()
}

// store checks whether a service would get a lease.
func (d *doctor) store(ctx context.Context, c setup.Config, s driver.Store, codec *randflake.Codec) {
	about, err := s.Describe(ctx)
	switch missing := errors.Is(err, lease.ErrNoStore); {
	case missing && errors.Is(noStore(s, err), errNoFile):
		d.ok("store", "%v", errNoFile)
		return
	case missing:
		d.wrong("store", "traceflake lease create", "%v", err)
		return
	case err != nil:
		d.wrong("store", "start the store, or correct "+setup.StoreVar+" and the rights of its user", "%v", err)
		return
	}
	d.ok("store", "ID %s, created %s, %s", about.ID, about.Created.Format(time.DateOnly), summary(about))
	switch {
	case codec == nil:
	case slices.Contains(about.Secrets, lease.Fingerprint(codec, about.ID)):
		d.ok("its secret", "the one in use is registered")
	default:
		d.wrong("its secret", "use the secret file of this store, or register a new secret: traceflake lease secret add",
			"the store does not know the secret in %s", c.SecretFile)
	}
	d.clock(ctx, s)
	d.leases(ctx, s, about)
}

// clock compares this machine's clock with the store's.
func (d *doctor) clock(ctx context.Context, s driver.Store) {
	const tolerated = 5 * time.Second // whole seconds, and the round trip to the store
	asked := now()
	at, err := s.Time(ctx)
	switch ahead := asked.Sub(at).Round(time.Second); {
	case err != nil:
		d.wrong("clock", "", "%v", err)
	case at.IsZero():
		d.ok("clock", "the store has no clock; check this machine's against NTP")
	case ahead.Abs() > tolerated:
		d.wrong("clock", "synchronize the clocks; a client more than a minute ahead gets no lease",
			"this machine is %s %s the store", shortly(ahead.Abs()), map[bool]string{true: "ahead of", false: "behind"}[ahead > 0])
	default:
		d.ok("clock", "agrees with the store's")
	}
}

func (d *doctor) leases(ctx context.Context, s driver.Store, about lease.Description) {
	blocks, err := s.List(ctx)
	held, all := len(taken(blocks)), driver.RangeOf(about).Blocks()
	switch {
	case err != nil:
		d.wrong("leases", "", "%v", err)
	case about.Raised.After(now()):
		d.wrong("leases", "wait until then", "nothing is granted before %s, to which the store was raised", rfc3339(about.Raised))
	case (all-held)*10 < all:
		d.wrong("leases", "look for crash loops in `traceflake lease list`; or shorten the TTL, or create a store with smaller blocks",
			"%d of %d blocks are taken", held, all)
	default:
		d.ok("leases", "%d of %d blocks are taken", held, all)
	}
}

// clickhouse checks the tables of spans.
func (d *doctor) clickhouse(s *server) {
	err := s.with(func(db *sql.DB) error {
		version := ""
		if err := db.QueryRowContext(d.cmd.Context(), "SELECT version()").Scan(&version); err != nil {
			return err
		}
		d.ok("ClickHouse", "version %s", version)
		tables, err := clickhouse.Adoption{}.Status(d.cmd.Context(), db)
		for _, t := range tables {
			kept, ordered := "kept forever", "no spans"
			if t.TTL != "" {
				kept = "TTL " + t.TTL
			}
			if t.Sampled > 0 {
				ordered = fmt.Sprintf("%.0f %% of the newest IDs are ordered", 100*t.Ordered)
			}
			d.ok("table", "%s, %s, %s, %s", t.Table, t.Engine, kept, ordered)
		}
		return err
	})
	if err != nil {
		d.wrong("ClickHouse", "traceflake clickhouse create, or adopt; correct "+clickhouseVar, "%v", err)
	}
}
