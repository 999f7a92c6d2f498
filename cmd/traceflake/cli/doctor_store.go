package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/traceflake/traceflake/internal/settings"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
)

// storeCheck checks a lease store, with the settings of a service.
type storeCheck struct {
	*doctor
	settings settings.Settings
	stores.Store
}

// run checks whether a service would get a lease.
func (d storeCheck) run() {
	codec := d.secret()
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
	if ttl := d.settings.TTL; ttl > about.LongestTTL {
		d.report("TTL", "", wrong(
			"set "+settings.TTL+" to at most that, or create another store with --longest-ttl",
			"%s=%s, and the store grants %s at most", settings.TTL, shortly(ttl),
			shortly(about.LongestTTL)))
	}
	if codec != nil {
		var err error
		if !slices.Contains(about.Secrets, about.Fingerprint(codec)) {
			err = fmt.Errorf("%s: %w", d.settings.SecretFile, lease.ErrWrongSecret)
		}
		d.report("its secret", "the secret in use is registered", err)
	}
	d.check("rights", d.rights)
	d.check("clock", d.clock)
	d.check("leases", func(ctx context.Context) (string, error) { return d.leases(ctx, about) })
}

// secret checks the secret that a service would use. It returns nil if the service has no secret.
func (d storeCheck) secret() (codec *randflake.Codec) {
	file, found := d.settings.SecretFile, "the store's own"
	var err error
	switch {
	case d.KeepsSecret() && file != "":
		err = wrong("unset "+settings.SecretFile, "the store has a secret of its own")
	case d.KeepsSecret():
		k, err := within(d.cmd.Context(), d.Secrets)
		if codec = k.Codec(); err != nil {
			return nil // the store's error is reported next
		}
	case file == "":
		err = wrong("set "+settings.SecretFile+" to the file that `traceflake lease create` wrote",
			"no secret file")
	default:
		var k *randflake.Keyring
		if k, err = settings.ReadKeyring(file); err != nil {
			break
		}
		codec = k.Codec()
		found = fmt.Sprintf("%s, secrets: %d; the first is in use", file, len(k.Codecs()))
		if err = settings.CheckSecretFile(file); err != nil {
			err = wrong("chmod o= on it; in Kubernetes, set the volume's defaultMode to 0440",
				"%w", err)
		}
	}
	d.report("secret", found, err)
	return codec
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
	held, all := len(taken(blocks)), about.Blocks()
	count := fmt.Sprintf("%d of %d blocks are taken", held, all)
	switch {
	case err != nil:
	case (all-held)*10 < all:
		err = wrong("look for crash loops in `traceflake lease list`; or shorten the TTL, or "+
			"create a store with smaller blocks", "%s", count)
	}
	return count, err
}
