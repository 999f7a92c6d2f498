package pages

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// Acquire implements [lease.Store]. It is two requests if the holder's home page
// has a free block and no one else writes it at this moment. Without a free
// block it reads every page, and lists their versions.
//
// For each holder one page is open at any time: its home, or the one to which
// marks lead from there. Only there it may be granted a block, and both the
// grant and a mark that moves it on are writes of this page, of which one is
// refused. So two copies of a request find each other.
func (s *Store) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	if err := driver.CheckRequest(r, time.Time{}); err != nil {
		return lease.Grant{}, fmt.Errorf("%s: %w", s.layout.Name, err)
	}
	sh, err := s.setup(ctx)
	var g lease.Grant
	if err == nil {
		g, err = s.acquire(ctx, sh, r)
	}
	if err != nil {
		return lease.Grant{}, s.failed(ctx, "acquire", err)
	}
	return g, nil
}

func (s *Store) acquire(ctx context.Context, sh shape, r lease.Request) (lease.Grant, error) {
	at, step := sh.home(r.Nonce), 0
	refused, since := false, uint64(0) // a write of this page, which had so many
	for try := 0; ; {
		p, err := s.read(ctx, sh, at)
		if err != nil {
			return lease.Grant{}, err
		}
		if b, held := p.held(sh, r.Nonce); held {
			return b.Grant(), nil
		}
		if m := p.mark(r.Nonce); m.Step > step {
			at, step, refused = m.To, m.Step, false
			continue
		}
		if refused && slices.Contains(p.since(since), r.Nonce) {
			return lease.Grant{}, errRepeated // and somebody else has the block by now
		}
		if err := driver.CheckRequest(r, p.latest()); err != nil {
			return lease.Grant{}, err
		}
		if p.version == "" {
			if now, err := s.configure(ctx, sh); err != nil {
				return lease.Grant{}, err
			} else if now != sh {
				return s.acquire(ctx, now, r) // which is known from now on
			}
		}
		b, free := p.free(sh, r.Now)
		to := at
		if free {
			if b, err = b.Acquire(r); err != nil {
				return lease.Grant{}, err
			}
			p.put(b)
		} else {
			if to, err = s.search(ctx, sh, r); err != nil {
				return lease.Grant{}, err
			}
			if to == at {
				continue
			}
			p.setMark(mark{Nonce: r.Nonce, Step: step + 1, To: to, Until: markUntil(p.now, r)})
		}
		since = p.Writes
		switch err := s.write(ctx, p, r.Nonce); {
		case err == nil && free:
			return b.Grant(), nil
		case err == nil:
			at, step, refused = to, step+1, false
		case !errors.Is(err, ErrChanged):
			return lease.Grant{}, err
		default:
			if err := pause(ctx, try); err != nil {
				return lease.Grant{}, err
			}
			refused = true
			try++
		}
	}
}

// markUntil returns when a mark is over, by the server's clock if it has one.
func markUntil(now time.Time, r lease.Request) time.Time {
	if now.IsZero() {
		now = r.Now
	}
	return now.Add(r.TTL + markFor).UTC().Truncate(time.Second)
}

// search returns a page that has a free block, or one that the holder has. It
// writes nothing.
//
// If it finds none, there was a moment at which no block was free: the one
// after the last page was read and before versions are listed. A page that still
// has the version that was read was full in between. So was one that has another
// version, is full, and had no release since it was read.
func (s *Store) search(ctx context.Context, sh shape, r lease.Request) (int, error) {
	first, n := sh.pages()
	seen := make(map[int]*page, n)
	// look reads pages, and reports whether there were releases on them.
	look := func(numbers []int) (found int, released bool, err error) {
		all, err := s.readAll(ctx, sh, numbers)
		if err != nil {
			return 0, false, err
		}
		for _, p := range all {
			_, held := p.held(sh, r.Nonce)
			if _, free := p.free(sh, r.Now); free || held {
				return p.Number, false, nil
			}
			old := seen[p.Number]
			released = released || old != nil && old.Releases != p.Releases
			seen[p.Number] = p
		}
		return -1, released, nil
	}

	order := rand.Perm(n)
	for i := range order {
		order[i] += first
	}
	for size := 1; len(order) > 0; size = min(2*size, atOnce) {
		size = min(size, len(order))
		if found, _, err := look(order[:size]); err != nil || found >= 0 {
			return found, err
		}
		order = order[size:]
	}
	for {
		versions, err := s.server.Versions(ctx)
		if err != nil {
			return 0, err
		}
		var changed []int
		for number, p := range seen {
			if versions[pageName(number)] != p.version {
				changed = append(changed, number)
			}
		}
		found, released, err := look(changed)
		if err != nil || found >= 0 {
			return found, err
		}
		if !released {
			return 0, fmt.Errorf("%w: all %d are granted", lease.ErrNoFreeNode, sh.nodes.Blocks())
		}
	}
}
