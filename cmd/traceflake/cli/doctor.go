package cli

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
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
	// Fix is what mends it.
	Fix string `json:"fix,omitempty"`
}

func doctorCommand(f *flags) *cobra.Command {
	var server server
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the environment, the lease store and ClickHouse",
		Long: `doctor checks what a service would use: the environment, the secret, the lease
store, and ClickHouse if it has an address. It prints a line for each check, and what
mends a problem. It writes nothing. The exit code is 1 if something is wrong.

Run it where the services run, with their environment.

With -o json each check is an object on a line of its own; fix is there if ok is false:
{"check":"secret","ok":false,"found":"no secret file","fix":"set TRACEFLAKE_SECRET_FILE …"}`,
		Example: `  traceflake doctor
  traceflake doctor --store postgres://db/traceflake --secret-file secret -o json`,
		Args: cobra.NoArgs,
	}
	f.addStore(cmd.Flags(), "store to check")
	f.addSecret(cmd)
	cmd.Flags().StringVar(&server.dsn, "dsn", "", "ClickHouse to check (default $"+clickhouseVar+")")
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		d := doctor{cmd: cmd, json: *output == "json"}
		d.environment(f)
		if server.address() != "" {
			d.clickhouse(&server)
		}
		if d.failed {
			return errReported
		}
		return d.err
	}
	return cmd
}

// doctor prints findings.
type doctor struct {
	cmd    *cobra.Command
	json   bool
	failed bool
	err    error
}

func (d *doctor) say(f finding) {
	d.failed = d.failed || !f.OK
	out := d.cmd.OutOrStdout()
	if d.json {
		d.err = errors.Join(d.err, json.NewEncoder(out).Encode(f))
		return
	}
	mark := "ok    "
	if !f.OK {
		mark = "WRONG "
	}
	_, err := fmt.Fprintf(out, "%s %-12s %s\n", mark, f.Check, f.Found)
	if f.Fix != "" && err == nil {
		_, err = fmt.Fprintf(out, "%-19s → %s\n", "", f.Fix)
	}
	d.err = errors.Join(d.err, err)
}

func (d *doctor) ok(check, format string, args ...any) {
	d.say(finding{Check: check, OK: true, Found: fmt.Sprintf(format, args...)})
}

func (d *doctor) wrong(check string, err error, fix string) {
	d.say(finding{Check: check, Found: err.Error(), Fix: fix})
}

// environment checks the settings, and with them the secret and the store.
func (d *doctor) environment(f *flags) {
	if unknown := setup.Unknown(os.Environ()); len(unknown) > 0 {
		d.wrong("environment", fmt.Errorf("nothing reads %s", strings.Join(unknown, ", ")), "correct the name; docs/configuration.md lists those that exist")
	}
	c, err := f.config()
	if err == nil {
		err = c.Check()
	}
	switch {
	case err != nil:
		d.wrong("environment", err, "correct the value")
		return
	case c.Store == "":
		d.ok("environment", "zero configuration: no store, and so no leases; IDs are ordered and not guessable")
		return
	}
	d.ok("environment", "store %s", c.Address())
	s, err := driver.Open(c.Store)
	if err != nil {
		d.wrong("store", err, "correct "+setup.StoreVar)
		return
	}
	defer closeStore(s)
	codec := d.secret(c, s)
	d.store(c, s, codec)
}

// secret checks the secret that a service would use. It returns nil if there is none.
func (d *doctor) secret(c setup.Config, s driver.Store) *randflake.Codec {
	ctx, cancel := context.WithTimeout(d.cmd.Context(), storeTimeout)
	defer cancel()
	if own, embedded := s.(driver.Embedded); embedded {
		codec, err := own.Codec(ctx)
		switch {
		case c.SecretFile != "":
			d.wrong("secret", errors.New("the file of the store has a secret of its own"), "unset "+setup.SecretFileVar)
		case err == nil:
			d.ok("secret", "the file's own")
		case !errors.Is(err, lease.ErrNoStore):
			d.wrong("secret", err, "move the file away: the first service creates another one, with another secret")
		}
		return codec
	}
	if c.SecretFile == "" {
		d.wrong("secret", errors.New("no secret file"), "set "+setup.SecretFileVar+" to the file that `traceflake lease create` wrote")
		return nil
	}
	k, err := setup.LoadKeyring(c.SecretFile) // which reports a file that every user can read
	if err != nil {
		d.wrong("secret", err, "set "+setup.SecretFileVar+" to the file that `traceflake lease create` wrote")
		return nil
	}
	d.ok("secret", "%s, secrets: %d; the first one is in use", c.SecretFile, len(k.Codecs()))
	return k.Codec()
}

// store checks whether a service would get a lease.
func (d *doctor) store(c setup.Config, s driver.Store, codec *randflake.Codec) {
	ctx, cancel := context.WithTimeout(d.cmd.Context(), storeTimeout)
	defer cancel()
	about, err := s.Describe(ctx)
	_, embedded := s.(driver.Embedded)
	switch {
	case errors.Is(err, lease.ErrNoStore) && embedded:
		d.ok("store", "there is no file yet: the first service creates it")
		return
	case errors.Is(err, lease.ErrNoStore):
		d.wrong("store", err, "traceflake lease create")
		return
	case err != nil:
		d.wrong("store", err, "start the store, or correct "+setup.StoreVar+" and the rights of its user")
		return
	}
	d.ok("store", "ID %s, created %s, nodes %d to %d in blocks of %d, leases of up to %s", about.ID, about.Created.Format(time.DateOnly),
		about.First, about.First+about.Nodes-1, about.BlockSize, shortly(about.LongestTTL))
	if codec != nil {
		if slices.Contains(about.Secrets, lease.Fingerprint(codec, about.ID)) {
			d.ok("its secret", "the one in use is registered")
		} else {
			d.wrong("its secret", fmt.Errorf("the store does not know the secret in %s", c.SecretFile),
				"use the secret file of this store, or register a new secret: traceflake lease secret add")
		}
	}
	d.clock(ctx, s)
	d.leases(ctx, s, about)
}

// clock compares this machine's clock with the store's.
func (d *doctor) clock(ctx context.Context, s driver.Store) {
	asked := now()
	at, err := s.Time(ctx)
	if err != nil {
		d.wrong("clock", err, "")
		return
	}
	if at.IsZero() {
		d.ok("clock", "the store does not tell the time; check this machine's against NTP")
		return
	}
	const tolerated = 5 * time.Second // whole seconds, and the way to the store
	if ahead := asked.Sub(at).Round(time.Second); ahead.Abs() > tolerated {
		d.wrong("clock", fmt.Errorf("this machine is %s %s the store", shortly(ahead.Abs()), map[bool]string{true: "ahead of", false: "behind"}[ahead > 0]),
			"synchronize the clocks; a client more than a minute ahead gets no lease")
		return
	}
	d.ok("clock", "agrees with the store's")
}

func (d *doctor) leases(ctx context.Context, s driver.Store, about lease.Description) {
	blocks, err := s.List(ctx)
	if err != nil {
		d.wrong("leases", err, "")
		return
	}
	held := 0
	for _, b := range blocks {
		if !driver.Block(b).Free(now()) {
			held++
		}
	}
	all := driver.RangeOf(about).Blocks()
	switch free := all - held; {
	case about.Raised.After(now()):
		d.wrong("leases", fmt.Errorf("nothing is granted before %s, to which the store was raised", rfc3339(about.Raised)), "wait until then")
	case free*10 < all:
		d.wrong("leases", fmt.Errorf("%d of %d blocks are taken", held, all),
			"look for crash loops in `traceflake lease list`; or shorten the TTL, or create a store with smaller blocks")
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
			kept := "kept for ever"
			if t.TTL != "" {
				kept = "TTL " + t.TTL
			}
			ordered := "no spans"
			if !math.IsNaN(t.Ordered) {
				ordered = fmt.Sprintf("%.0f %% of the newest IDs are ordered", 100*t.Ordered)
			}
			d.ok("table", "%s, %s, %s, %s", t.Table, t.Engine, kept, ordered)
		}
		return err
	})
	if err != nil {
		d.wrong("ClickHouse", err, "traceflake clickhouse create, or adopt; correct "+clickhouseVar)
	}
}
