package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/fleet"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
)

// storeCheck checks a lease store, with the settings of a service.
type storeCheck struct {
	*doctor
	settings fleet.Config
	stores.Store
}

// run checks whether a service would get a lease.
func (d storeCheck) run() {
	var k *randflake.Keyring
	switch {
	case !d.KeepsSecret():
		k = d.secretFile()
	case d.settings.SecretFile != "":
		d.report("secret", "", wrong("unset TRACEFLAKE_SECRET_FILE",
			"the store has a secret of its own"))
	}
	about, err := within(d.cmd.Context(), d.Describe)
	found := fmt.Sprintf("ID %s, created %s, %s", about.ID, about.Created.Format(time.DateOnly),
		summary(about))
	none := errors.Is(noStore(d.Store, err), errNoFile)
	if none {
		found = errNoFile.Error()
		_, err = within(d.cmd.Context(), d.rights)
	}
	if !d.report("store", found, err) || none {
		return
	}
	if d.KeepsSecret() {
		k = d.ownSecret()
	}
	if ttl := d.settings.TTL; ttl > about.LongestTTL {
		d.report("TTL", "", wrong(
			"set TRACEFLAKE_TTL to at most that, or create another store with --longest-ttl",
			"TRACEFLAKE_TTL=%s, and the store grants %s at most", shortly(ttl),
			shortly(about.LongestTTL)))
	}
	if k != nil {
		d.registered(about, k)
	}
	d.check("rights", d.rights)
	d.check("clock", d.clock)
	d.check("leases", func(ctx context.Context) (string, error) { return d.leases(ctx, about) })
}

// secretFile checks the secret file that a service would use.
func (d storeCheck) secretFile() (k *randflake.Keyring) {
	file := d.settings.SecretFile
	if file == "" {
		d.report("secret", "", wrong("set TRACEFLAKE_SECRET_FILE to the file that `traceflake "+
			"lease create` wrote", "no secret file"))
		return nil
	}
	err := errors.Join(withReports(func() (err error) {
		k, err = fleet.LoadKeyring(file)
		return err
	})...)
	d.report("secret", fmt.Sprintf("%s, secrets: %d; the first is in use", file, len(k.Codecs())),
		err)
	return k
}

// ownSecret checks the secret that the store keeps.
func (d storeCheck) ownSecret() *randflake.Keyring {
	k, err := within(d.cmd.Context(), d.Secrets)
	d.report("secret", "the store's own", err)
	return k
}

// registered checks whether the store has the secret in use, and no newer one.
func (d storeCheck) registered(about lease.Description, k *randflake.Keyring) {
	found := "the secret in use is registered"
	var err error
	switch i := slices.Index(about.Secrets, about.Fingerprint(k.Codec())); {
	case i < 0:
		err = fmt.Errorf("%s: %w", d.settings.SecretFile, lease.ErrWrongSecret)
	case i < len(about.Secrets)-1:
		found += ", and a newer one: see \"Changing it\" in docs/secrets.md"
	}
	d.report("its secret", found, err)
}

// rights checks whether a service may change leases, without changing one.
func (d storeCheck) rights(ctx context.Context) (found string, err error) {
	err = d.CheckRights(ctx)
	if errors.Is(err, driver.ErrRightsUnknown) {
		return "reading works; " + err.Error(), nil
	}
	return "leases may be read and changed", err
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
	case err != nil:
	case (all-held)*10 < all:
		err = wrong("look for crash loops in `traceflake lease list`; or shorten the TTL, or "+
			"create a store with smaller blocks", "%s", count)
	}
	return count, err
}
