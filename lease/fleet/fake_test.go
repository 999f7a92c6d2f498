package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
)

// fakeStore is a store in memory that is registered as another module would do it.
type fakeStore struct {
	stores.Store
	server calls.Memory
	url    string
	closed bool

	described atomic.Int64
	shown     atomic.Pointer[lease.Description] // by a store that was set back
}

// opened is the store that was opened last.
var opened *fakeStore

func init() {
	stores.Register("fleet-test", func(url string) (_ stores.Store, err error) {
		if strings.Contains(url, "refuse") {
			return nil, errors.New("the driver refuses")
		}
		opened = &fakeStore{url: url}
		layout := driver.Layout{Name: "fleet-test", BlocksPerPage: 4}
		if opened.Store, err = stores.New(&opened.server, layout); err != nil {
			return nil, err
		}
		_, err = opened.Create(context.Background(),
			lease.Description{First: 256, Nodes: 64, BlockSize: 16}, keyring(secret).Codec())
		return opened, err
	})
}

// keyring returns secrets.
func keyring(text string) *randflake.Keyring {
	k, err := randflake.ParseKeyring(text)
	if err != nil {
		panic(err)
	}
	return k
}

func (s *fakeStore) Describe(ctx context.Context) (lease.Description, error) {
	s.described.Add(1)
	if d := s.shown.Load(); d != nil {
		return *d, nil
	}
	return s.Store.Describe(ctx)
}

// slowAnswer is later than the second that a start otherwise waits.
const slowAnswer = 1503 * time.Millisecond

// answers maps the end of the URL to the result of Acquire.
var answers = map[string]struct {
	after time.Duration
	err   error
}{
	"dead": {time.Hour, errors.New("too late")},
	"away": {0, errors.New("connection refused")},
	"role": {0, lease.ErrMisconfigured},
	"slow": {slowAnswer, lease.ErrMisconfigured},
}

func (s *fakeStore) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	for end, answer := range answers {
		if strings.HasSuffix(s.url, end) {
			select {
			case <-time.After(answer.after):
				return lease.Grant{}, fmt.Errorf("%s: %w", s.url, answer.err)
			case <-ctx.Done():
				return lease.Grant{}, ctx.Err()
			}
		}
	}
	return s.Store.Acquire(ctx, r)
}

func (s *fakeStore) Close() error {
	s.closed = true
	return s.Store.Close()
}
