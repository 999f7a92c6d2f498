package fleet_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/memstore"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
)

// fakeStore is a store that is registered as another module would do it.
type fakeStore struct {
	stores.Store
	url    string
	closed int

	described atomic.Int64
	shown     atomic.Pointer[lease.Description] // by a store that was set back
}

func (s *fakeStore) Describe(ctx context.Context) (lease.Description, error) {
	s.described.Add(1)
	if d := s.shown.Load(); d != nil {
		return *d, nil
	}
	return s.Store.Describe(ctx)
}

// opened is the store that was opened last.
var opened *fakeStore

func init() {
	stores.Register("fleet-test", func(url string) (stores.Store, error) {
		if strings.Contains(url, "refuse") {
			return nil, errors.New("the driver refuses")
		}
		nodes := lease.Description{First: 256, Nodes: 64, BlockSize: 16}
		secrets, err := randflake.ParseKeyring(secret)
		if err != nil {
			return nil, err
		}
		opened = &fakeStore{Store: memstore.New(nodes, secrets.Codec()), url: url}
		return opened, nil
	})
}

var errAway = errors.New("connection refused")

// slowAnswer is later than the second that a start otherwise waits.
const slowAnswer = 1503 * time.Millisecond

// answers maps the end of the URL to the result of Acquire.
var answers = map[string]struct {
	after time.Duration
	err   error
}{
	"dead":   {time.Hour, nil},
	"away":   {0, errAway},
	"full":   {0, lease.ErrNoFreeNode},
	"role":   {0, lease.ErrMisconfigured},
	"newer":  {0, lease.ErrSchemaVersion},
	"absent": {0, lease.ErrNoStore},
	"moved":  {0, lease.ErrMoved},
	"slow":   {slowAnswer, lease.ErrMisconfigured},
}

func (s *fakeStore) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	for end, answer := range answers {
		if strings.HasSuffix(s.url, end) {
			select {
			case <-time.After(answer.after):
				return lease.Grant{}, answer.err
			case <-ctx.Done():
				return lease.Grant{}, ctx.Err()
			}
		}
	}
	return s.Store.Acquire(ctx, r)
}

func (s *fakeStore) Close() error {
	s.closed++
	return nil
}
