package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// A history is known by its ID, which is in the description and on every page. One begins in three
// steps:
//
//  1. The description gets a new ID and the present place, and is not complete: from then on no
//     grant of the earlier history is confirmed.
//  2. Each page is replaced by an empty one with the new ID, whatever it contains. From then on no
//     request of the earlier history changes it.
//  3. The description becomes complete.
//
// That is safe from any state of the store, and whoever does it, because nobody has used the ID.
// Therefore:
//
//   - An ID is drawn for one attempt. Nobody goes on with a begin whose ID he has not drawn in this
//     attempt: the store may have been set back to the middle of one that was completed, whose
//     nodes were granted since.
//   - The third step is sent once. After anything but its acknowledgement, also after a refusal in
//     the first two, another attempt draws another ID.
//   - Every write compares the place, where the server can.

const (
	// beginTries is how often a call attempts to begin a history that others prevent.
	beginTries = 20
	// A begin by somebody else is watched every watchPause, more or less, until it has not advanced
	// watchTries times.
	watchTries = 10
	watchPause = time.Second
)

// Create implements [stores.Store].
func (s *Store) Create(ctx context.Context, d lease.Description,
	secret *randflake.Codec) (_ lease.Description, err error) {
	defer s.failed(ctx, &err, "create")
	d.BlockSize, d.Keyless = cmp.Or(d.BlockSize, 8), secret == nil
	if d.First == 0 {
		d.Nodes = cmp.Or(d.Nodes, allNodes)
	}
	d.LongestTTL = cmp.Or(d.LongestTTL, lease.DefaultTTL)
	if err := checkDescription(d); err != nil {
		return d, err
	}
	n := &config{Description: d, BlocksPerPage: s.layout.BlocksPerPage, secret: secret}
	remains := s.remains(ctx, n.pages()) // first: no page is written before the description
	if remains != nil && !errors.Is(remains, lease.ErrExists) {
		return d, remains
	}
	c, err := s.begin(ctx, func(c *config, o driver.Object) (*config, error) {
		switch {
		case c.ID != "" && !c.uncreated():
			return nil, fmt.Errorf("%w, created at %s", lease.ErrExists, text(c.Created))
		case c.ID == "" && remains != nil:
			return nil, remains
		}
		n.Begun, n.Reason, n.Earlier = begun(o, time.Now()), lease.Created, nil
		n.Created = n.Begun
		return n, nil
	})
	return c.Description, err
}

// remains returns [lease.ErrExists] if one of so many pages exists.
func (s *Store) remains(ctx context.Context, pages int) error {
	return each(ctx, s.atOnce, pages, func(ctx context.Context, number int) error {
		o, err := s.objects.Read(ctx, pageName(number))
		if err == nil && o.Version != "" {
			err = fmt.Errorf("%w: %w: its pages are here, such as %s, but the object %q is gone",
				lease.ErrExists, driver.ErrEdited, pageName(number), configName)
		}
		return err
	})
}

// Begin implements [lease.Store].
func (s *Store) Begin(ctx context.Context,
	r lease.BeginRequest) (_ lease.Description, err error) {
	defer s.failed(ctx, &err, "begin a history")
	c, err := s.begin(ctx, func(c *config, o driver.Object) (*config, error) {
		granting := c.grants(o.Place)
		switch {
		case errors.Is(granting, lease.ErrNoStore):
			return nil, granting
		case granting == nil && c.ID != r.Leaves:
			return nil, c.is(r.Leaves)
		case c.Keyless && r.Reason != lease.Rekey:
			return nil, &lease.Error{Err: fmt.Errorf("%w: a store without a secret begins no "+
				"history by itself", lease.ErrMisconfigured), Fix: fixKeyless}
		case c.Keyless && r.Secret != nil:
			return nil, driver.Invalid("the store was created without a secret, and gets none")
		}
		n := *c
		n.secret = r.Secret
		if !c.Keyless && n.secret == nil {
			if n.secret, err = c.Find(r.Secrets); err != nil {
				return nil, err
			}
		}
		n.Begun, n.Reason = begun(o, r.Now), r.Reason
		if !c.Complete && r.Reason == lease.Moved {
			n.Reason = c.Reason // of the begin that was interrupted
		}
		n.Earlier = c.earlier(r.Known, n.Begun)
		return &n, nil
	})
	return c.Description, err
}

// begun returns the time at which a history begins: the store's, if it has a clock.
func begun(o driver.Object, now time.Time) time.Time {
	if !o.Time.IsZero() {
		now = o.Time
	}
	return whole(now)
}

// earlier returns the earlier histories of the one that is begun after c, with those that the
// client knows. The store keeps 64, and any more with whose leases IDs may still be generated.
func (c *config) earlier(known []lease.History, now time.Time) (all []lease.History) {
	const least = 64
	shown := c.Earlier
	if c.Complete {
		shown = c.Histories()
	}
	seen := map[string]bool{}
	for _, h := range slices.Concat(shown, known) {
		if !seen[h.ID] {
			all, seen[h.ID] = append(all, h), true
		}
	}
	slices.SortStableFunc(all, func(a, b lease.History) int { return b.Begun.Compare(a.Begun) })
	for len(all) > least && now.Sub(all[len(all)-2].Begun) > lease.MaxTTL {
		all = all[:len(all)-1]
	}
	return all
}

// begin begins a history, in several attempts if others prevent them. plan returns what to write
// after a description, which is zero if there is none, or an error. begin returns the description
// of the history that it has begun, or together with plan's error the one that plan was given.
func (s *Store) begin(ctx context.Context,
	plan func(c *config, o driver.Object) (*config, error)) (*config, error) {
	ours := "" // the version of a description with whose begin nobody goes on
	for tries := 1; ; tries++ {
		o, err := s.place(ctx)
		if err != nil {
			return &config{}, err
		}
		c, err := parseConfig(o)
		if err != nil && o.Version != "" {
			return c, err
		}
		n, err := plan(c, o)
		if err != nil {
			return c, err
		}
		if c.ID != "" && !c.Complete && c.Place == o.Place && o.Version != ours {
			if err := s.watch(ctx, c, o); err != nil {
				return c, err
			}
			ours = o.Version
			continue
		}
		ours, err = s.attempt(ctx, n, o)
		if err == nil {
			return n, nil
		}
		_, busy := errors.AsType[*driver.TryAgain](err)
		refused := busy || errors.Is(err, driver.ErrChanged) || errors.Is(err, lease.ErrMoved)
		if !refused || tries == beginTries {
			return c, err
		}
	}
}

// place reads the description at a place that is known. If there is none, it lets the backend draw
// one.
func (s *Store) place(ctx context.Context) (o driver.Object, err error) {
	if o, err = s.objects.Read(ctx, configName); err != nil || o.Place != "" {
		return o, err
	}
	if client, ok := s.objects.Objects.(interface{ Prepare(context.Context) error }); ok {
		if err := s.objects.do(ctx, client.Prepare); err != nil {
			return o, err
		}
	}
	o, err = s.objects.Read(ctx, configName)
	if err == nil && o.Place == "" {
		err = fmt.Errorf("%w: it does not show its place, so copies of the store could not be "+
			"told apart", lease.ErrMisconfigured)
	}
	return o, err
}

// watch waits while somebody else's begin advances: until the description changes, or no more pages
// are written. They are written in order, more or less, so one in a sixteenth is enough.
func (s *Store) watch(ctx context.Context, c *config, begun driver.Object) error {
	for number, still := 0, 0; still < watchTries; still++ {
		if err := s.sleep(ctx, watchPause/2+rand.N(watchPause)); err != nil {
			return err
		}
		o, err := s.objects.Read(ctx, configName)
		if err != nil || o.Version != begun.Version || o.Place != begun.Place {
			return err
		}
		if o, err = s.objects.Read(ctx, pageName(number)); err != nil {
			return err
		}
		var h pageHeader
		_, err = unseal("", o.Data, &h)
		if next := number + 1 + c.pages()/16; err == nil && h.Store == c.ID && next < c.pages() {
			number, still = next, 0
		}
	}
	return nil
}

// attempt begins a history once, in a store whose description is o. It returns the version of the
// description while it is being begun. If others prevent it, the error wraps driver.ErrChanged or
// lease.ErrMoved.
func (s *Store) attempt(ctx context.Context, n *config,
	o driver.Object) (begun string, err error) {
	n.Format, n.Complete, n.ID, n.Place, n.Secret = format, false, s.drawID(o.Place), o.Place, ""
	if n.secret != nil {
		if _, err := lease.HistoryCodec(n.secret, n.ID); err != nil {
			return "", driver.Invalid("%w", err)
		}
		n.Secret = n.Fingerprint(n.secret)
	}
	written, err := s.objects.Write(ctx, configName, seal(n), o.Version, o.Place)
	if err != nil {
		return "", err
	}
	err = each(ctx, s.atOnce, n.pages(), func(ctx context.Context, number int) error {
		return s.empty(ctx, n, number)
	})
	if err != nil {
		return written.Version, err
	}
	n.Complete = true
	_, err = s.objects.write(ctx, 1, configName, seal(n), written.Version, o.Place)
	return written.Version, err
}

// drawID returns a new ID. Copies of a machine may draw the same random bits, and copies of a store
// have other places.
func (s *Store) drawID(place string) string {
	var bits [32]byte
	s.random(bits[:])
	sum := sha256.Sum256(append(bits[:], place...))
	return hex.EncodeToString(sum[:idLen/2])
}

// empty replaces a page by an empty one of the history that is being begun.
func (s *Store) empty(ctx context.Context, c *config, number int) error {
	name := pageName(number)
	return s.update(ctx, c, number, func(o driver.Object, _ bool) ([]byte, error) {
		var h pageHeader
		if _, err := unseal(name, o.Data, &h); err == nil && h.Store == c.ID {
			return nil, nil
		}
		// The description of a later history was written before its pages. So if the page that was
		// just read belongs to one, this finds out.
		o, err := s.objects.Read(ctx, configName)
		if err != nil {
			return nil, err
		}
		now, err := parseConfig(o)
		switch {
		case err != nil:
			return nil, err
		case o.Place != c.Place, now.ID != c.ID, now.Complete:
			return nil, fmt.Errorf("%w: somebody else begins the history %s", driver.ErrChanged,
				now.ID)
		}
		return seal(pageHeader{Format: format, Store: c.ID, Number: number}), nil
	})
}
