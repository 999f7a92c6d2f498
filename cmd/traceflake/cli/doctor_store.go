package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/fleet"
	"github.com/traceflake/traceflake/randflake"
)

// storeCheck checks a lease store, with the settings of a service.
type storeCheck struct {
	*doctor
	openStore
}

// run checks whether a service would get a lease.
func (d storeCheck) run() {
	about, err := within(d.cmd.Context(), d.Describe)
	none := errors.Is(d.noStore(err), errNoFile)
	k := d.secrets(about, none)
	idle := false // it grants nothing now
	found := fmt.Sprintf("history %s, created %s, %s", about.ID,
		about.Created.Format(time.DateOnly), summary(about))
	switch {
	case none:
		found = errNoFile.Error()
		pages, _ := filepath.Glob(filepath.Join(d.settings.Directory(), "page-*"))
		if _, err = within(d.cmd.Context(), d.rights); err == nil && len(pages) > 0 {
			err = wrong("restore that file, or create another store elsewhere",
				"%s has pages of a store, but the file \"config\" is gone", d.openStore)
		}
	case errors.Is(err, lease.ErrMoved) && !lease.Permanent(err):
		found += "; it was restored, moved or copied: the next process begins a history"
		idle, err = true, nil
	case errors.Is(err, lease.ErrBeginning):
		found += "; a history is being begun; if that is interrupted, the next process begins one"
		idle, err = true, nil
	}
	if !d.report("store", found, err) || none {
		return
	}
	if ttl := d.settings.TTL; ttl > about.LongestTTL {
		d.report("TTL", "", wrong(
			"set TRACEFLAKE_TTL to at most that, or create another store with --longest-ttl",
			"TRACEFLAKE_TTL=%s, and the store grants %s at most", shortly(ttl),
			shortly(about.LongestTTL)))
	}
	if k != nil {
		_, err := about.Find(k)
		d.report("its secret", "this process has it", err)
	}
	d.histories(about)
	d.check("rights", d.rights)
	d.check("clock", d.clock)
	if idle {
		return
	}
	d.check("leases", func(ctx context.Context) (string, error) { return d.leases(ctx, about) })
}

// secrets checks the secrets that a service would use. A lease directory that is missing has none.
func (d storeCheck) secrets(about lease.Description, none bool) (k *randflake.Keyring) {
	if about.Keyless {
		return nil
	}
	err := errors.Join(withReports(func() (err error) {
		k, err = d.settings.LoadSecrets()
		if none && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})...)
	if errors.Is(err, fleet.ErrConfig) {
		err = wrong("set TRACEFLAKE_SECRET_FILE or TRACEFLAKE_SECRET to what `traceflake lease "+
			"create` wrote", "no secret")
	}
	if k != nil || err != nil {
		where := cmp.Or(d.settings.SecretFile, "that of the lease directory")
		if d.settings.Secrets != nil {
			where = "TRACEFLAKE_SECRET"
		}
		d.report("secret", fmt.Sprintf("%s, secrets: %d", where, len(k.Codecs())), err)
	}
	return k
}

// histories checks how often the store has moved or forgotten leases.
func (d storeCheck) histories(about lease.Description) {
	const most = 3 // a day
	var last []string
	today := 0
	for _, h := range about.Histories() {
		if len(last) <= most {
			last = append(last, rfc3339(h.Begun)+" "+h.Reason)
		}
		alone := h.Reason != lease.Created && h.Reason != lease.Rekey
		if alone && now().Sub(h.Begun) < 24*time.Hour {
			today++
		}
	}
	found := "the last ones: " + strings.Join(last, ", ")
	var err error
	if today > most {
		err = wrong("moved: find out why the server loses its place, such as crashes or "+
			"failovers; contradicted: why it forgets acknowledged writes",
			"processes began %d in the last day, %s", today, found)
	}
	d.report("histories", found, err)
}

// rights checks whether a service may change leases, without changing one.
func (d storeCheck) rights(ctx context.Context) (found string, err error) {
	err = d.CheckRights(ctx)
	if errors.Is(err, driver.ErrRightsUnknown) {
		return "reading works; " + err.Error(), nil
	}
	return "leases may be changed, and histories begun", err
}

// clock compares this machine's clock with the store's.
func (d storeCheck) clock(ctx context.Context) (found string, err error) {
	const tolerated = 5 * time.Second // whole seconds, and the round trip to the store
	asked := now()
	at, err := d.Time(ctx)
	ahead, side := asked.Sub(at).Round(time.Second), "behind"
	if ahead > 0 {
		side = "ahead of"
	}
	switch {
	case err != nil:
		return "", err
	case at.IsZero():
		return "the store has no clock; check this machine's against NTP", nil
	case ahead.Abs() > tolerated:
		return "", wrong("synchronize the clocks; a client more than a minute ahead gets no lease",
			"this machine is %s %s the store", shortly(ahead.Abs()), side)
	}
	return "agrees with the store's", nil
}

// leases checks that blocks are free.
func (d storeCheck) leases(ctx context.Context, about lease.Description) (string, error) {
	blocks, err := d.List(ctx)
	held, all := len(taken(blocks, storeTime(ctx, d.Store))), about.Blocks()
	count := fmt.Sprintf("%d of %d blocks are taken", held, all)
	switch {
	case errors.Is(err, lease.ErrContradicted):
		err = wrong("begin a new history of the store, as the next process does by itself: "+
			"traceflake lease rekey", "%w", err)
	case err != nil:
	case (all-held)*10 < all:
		err = wrong("look for crash loops in `traceflake lease list`; or shorten the TTL, or "+
			"create a store with smaller blocks", "%s", count)
	}
	return count, err
}
