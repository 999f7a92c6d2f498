package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/setup"
)

// storeCheck checks a lease store, with the settings of a service.
type storeCheck struct {
	*doctor
	settings setup.Config
	driver.Store
}

// secret checks the secret that a service would use. It returns nil if there is none.
func (d storeCheck) secret() *randflake.Codec {
	file := d.settings.SecretFile
	if own, embedded := d.Store.(driver.Embedded); embedded {
		codec, err := within(d.cmd.Context(), own.Codec)
		switch {
		case file != "":
			d.wrong("secret", "unset "+setup.SecretFileVar, "the store has a secret of its own")
		case err == nil:
			d.ok("secret", "the store's own")
		} // another error is the store's, which is reported next
		return codec
	}
	if file == "" {
		d.wrong("secret", "set "+setup.SecretFileVar+
			" to the file that `traceflake lease create` wrote", "no secret file")
		return nil
	}
	k, err := setup.ReadKeyring(file)
	if err != nil {
		d.failed("secret", err)
		return nil
	}
	if err := setup.CheckSecretFile(file); err != nil {
		d.wrong("secret", "chmod o= on it; in Kubernetes, set the volume's defaultMode to 0440",
			"%v", err)
	} else {
		d.ok("secret", "%s, secrets: %d; the first one is in use", file, len(k.Codecs()))
	}
	return k.Codec()
}

// store checks whether a service would get a lease.
func (d storeCheck) store(codec *randflake.Codec) {
	about, err := within(d.cmd.Context(), d.Describe)
	if errors.Is(noStore(d.Store, err), errNoFile) {
		if err := driver.CheckRights(d.cmd.Context(), d.Store); err != nil &&
			!errors.Is(err, driver.ErrRightsUnknown) {
			d.failed("store", err)
			return
		}
		d.ok("store", "%v", errNoFile)
		return
	}
	if err != nil {
		d.failed("store", err)
		return
	}
	d.ok("store", "ID %s, created %s, %s", about.ID, about.Created.Format(time.DateOnly),
		summary(about))
	if ttl := d.settings.TTL; ttl > about.LongestTTL {
		d.wrong("TTL", "set "+setup.TTLVar+
			" to at most that, or create another store with --longest-ttl",
			"%s=%s, and the store grants %s at most", setup.TTLVar, shortly(ttl),
			shortly(about.LongestTTL))
	}
	switch {
	case codec == nil:
	case slices.Contains(about.Secrets, driver.Fingerprint(codec, about.ID)):
		d.ok("its secret", "the one in use is registered")
	default:
		d.wrong("its secret", "use the secret file of this store, or register a new secret: "+
			"traceflake lease secret add",
			"the store does not know the secret in %s", d.settings.SecretFile)
	}
	d.rights()
	d.clock()
	d.leases(about)
}

// rights checks whether a service may change leases, without changing one.
func (d storeCheck) rights() {
	_, err := within(d.cmd.Context(), func(ctx context.Context) (struct{}, error) {
		return struct{}{}, driver.CheckRights(ctx, d.Store)
	})
	switch {
	case errors.Is(err, driver.ErrRightsUnknown):
		d.ok("rights", "reading works; %v", err)
	case err != nil:
		d.failed("rights", err)
	default:
		d.ok("rights", "leases may be read and changed")
	}
}

// clock compares this machine's clock with the store's.
func (d storeCheck) clock() {
	const tolerated = 5 * time.Second // whole seconds, and the round trip to the store
	asked := now()
	at, err := within(d.cmd.Context(), d.Time)
	switch ahead := asked.Sub(at).Round(time.Second); {
	case err != nil:
		d.failed("clock", err)
	case at.IsZero():
		d.ok("clock", "the store has no clock; check this machine's against NTP")
	case ahead.Abs() > tolerated:
		d.wrong("clock", "synchronize the clocks; a client more than a minute ahead gets no lease",
			"this machine is %s %s the store", shortly(ahead.Abs()),
			map[bool]string{true: "ahead of", false: "behind"}[ahead > 0])
	default:
		d.ok("clock", "agrees with the store's")
	}
}

func (d storeCheck) leases(about lease.Description) {
	blocks, err := within(d.cmd.Context(), d.List)
	held, all := len(taken(blocks)), driver.RangeOf(about).Blocks()
	count := fmt.Sprintf("%d of %d blocks are taken", held, all)
	switch {
	case err != nil:
		d.failed("leases", err)
	case about.Raised.After(now()):
		d.wrong("leases", "wait until then: processes recover by themselves",
			"nothing is granted before %s, to which the store was raised", rfc3339(about.Raised))
	case (all-held)*10 < all:
		d.wrong("leases", "look for crash loops in `traceflake lease list`; or shorten the TTL, "+
			"or create a store with smaller blocks", "%s", count)
	default:
		d.ok("leases", "%s", count)
	}
}
