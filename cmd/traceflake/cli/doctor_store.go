package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// storeCheck checks a lease store, with the settings of a service.
type storeCheck struct {
	*doctor
	openStore
}

// run checks whether a service would get a lease.
func (d storeCheck) run() {
	about, state := within(d.cmd.Context(), d.Describe)
	none := d.settings.Directory() != "" && errors.Is(state, lease.ErrNoStore)
	if !about.Keyless {
		k, err := d.settings.LoadSecrets()
		if err == nil && about.ID != "" {
			_, err = about.Find(k)
		}
		if !none || !errors.Is(err, fs.ErrNotExist) {
			d.report("secret", fmt.Sprintf("secrets: %d", len(k.Codecs())), err)
		}
	}
	if none {
		d.check("store", d.unused)
		return
	}
	found := fmt.Sprintf("history %s, created %s, %s", about.ID,
		about.Created.Format(time.DateOnly), summary(about))
	idle := true // it grants nothing now
	switch {
	case errors.Is(state, lease.ErrMoved) && !lease.Permanent(state):
		found += "; it was restored, moved or copied: the next process begins a history"
	case errors.Is(state, lease.ErrBeginning):
		found += "; a history is being begun; if that is interrupted, the next process begins one"
	case state != nil:
		d.report("store", "", state)
		return
	default:
		idle = false
	}
	d.report("store", found, nil)
	if ttl := d.settings.TTL; ttl > about.LongestTTL {
		d.report("TTL", "", withFix(
			"set TRACEFLAKE_TTL to at most that, or create another store with --longest-ttl",
			"TRACEFLAKE_TTL=%s, and the store grants %s at most", shortly(ttl),
			shortly(about.LongestTTL)))
	}
	d.histories(about)
	d.check("rights", d.rights)
	d.check("clock", d.clock)
	if !idle {
		d.check("leases", func(ctx context.Context) (string, error) {
			return d.leases(ctx, about.Blocks())
		})
	}
}

// unused checks whether a process could create a lease directory.
func (d storeCheck) unused(ctx context.Context) (string, error) {
	pages, err := filepath.Glob(filepath.Join(d.settings.Directory(), "page-*"))
	if err == nil {
		_, err = d.rights(ctx)
	}
	if err == nil && len(pages) > 0 {
		err = withFix("restore that file, or create another store elsewhere",
			"%s has pages of a store, but the file \"config\" is gone", d.openStore)
	}
	return "the next process creates it, with its secret", err
}

// histories checks how often the store has moved or forgotten leases.
func (d storeCheck) histories(about lease.Description) {
	const most = 3 // a day
	all, today := about.Histories(), 0
	for _, h := range all {
		alone := h.Reason != lease.Created && h.Reason != lease.Rekey
		if alone && now().Sub(h.Begun) < 24*time.Hour {
			today++
		}
	}
	var last []string
	for _, h := range all[:min(len(all), most+1)] {
		last = append(last, rfc3339(h.Begun)+" "+h.Reason)
	}
	found := "the last ones: " + strings.Join(last, ", ")
	var err error
	if today > most {
		err = withFix("moved: find out why the server loses its place, such as crashes or "+
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
	ahead := asked.Sub(at).Round(time.Second)
	switch {
	case err != nil:
		return "", err
	case at.IsZero():
		return "the store has no clock; check this machine's against NTP", nil
	case ahead > tolerated, ahead < -tolerated:
		side := "ahead of"
		if ahead < 0 {
			side = "behind"
		}
		return "", withFix(
			"synchronize the clocks; a client more than a minute ahead gets no lease",
			"this machine is %s %s the store", shortly(ahead.Abs()), side)
	}
	return "agrees with the store's", nil
}

// leases checks that blocks are free.
func (d storeCheck) leases(ctx context.Context, all int) (string, error) {
	blocks, err := d.List(ctx)
	at, held := storeTime(ctx, d.Store), 0
	for _, b := range blocks {
		if !free(b, at) {
			held++
		}
	}
	count := fmt.Sprintf("%d of %d blocks are taken", held, all)
	switch {
	case errors.Is(err, lease.ErrContradicted):
		err = withFix("begin a new history of the store, as the next process does by itself: "+
			"traceflake lease rekey", "%w", err)
	case err == nil && (all-held)*10 < all:
		err = withFix("look for crash loops in `traceflake lease list`; or shorten the TTL, or "+
			"create a store with smaller blocks", "%s", count)
	}
	return count, err
}
