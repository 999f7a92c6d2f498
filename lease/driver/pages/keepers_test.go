package pages_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/driver/pages"
	"github.com/traceflake/traceflake/lease/driver/pages/pagestest"
	"github.com/traceflake/traceflake/randflake"
)

// badNetwork is one process's way to the server: slow, and each tenth request or
// answer is lost, late or repeated.
type badNetwork struct {
	pages.Server
	mu   sync.Mutex
	rng  *rand.Rand
	late *sync.WaitGroup
	gone bool
}

func (n *badNetwork) fate() (fate int, later time.Duration) {
	n.mu.Lock()
	fate, later = n.rng.IntN(50), time.Duration(n.rng.Int64N(int64(time.Minute)))
	wait := time.Duration(n.rng.Int64N(int64(50 * time.Millisecond)))
	if n.gone {
		fate = 0
	}
	n.mu.Unlock()
	time.Sleep(wait)
	return fate, later
}

func (n *badNetwork) Read(ctx context.Context, name string) (pages.Object, error) {
	if fate, _ := n.fate(); fate == 0 {
		return pages.Object{}, errLost
	}
	return n.Server.Read(ctx, name)
}

func (n *badNetwork) Write(ctx context.Context, name string, data []byte, version string) (pages.Object, error) {
	do := func() (pages.Object, error) { return n.Server.Write(context.Background(), name, data, version) }
	switch fate, later := n.fate(); fate {
	case 0:
		return pages.Object{}, errLost
	case 1:
		_, _ = do()
		return pages.Object{}, errLost
	case 2, 3:
		n.late.Go(func() {
			time.Sleep(later)
			_, _ = do()
		})
		if fate == 2 {
			return pages.Object{}, errLost
		}
	case 4, 5:
		_, _ = do()
	}
	return do()
}

// Keepers make IDs over bad networks, are gone and start again. No ID is made
// twice, unless the server ignores versions.
func TestKeepers(t *testing.T) {
	for seed := range uint64(4) {
		made, twice := runKeepers(t, seed, &pagestest.Server{Now: time.Now})
		if twice > 0 || made < 50_000 {
			t.Errorf("seed %d: %d IDs, %d made twice", seed, made, twice)
		}
		t.Logf("seed %d: %d IDs", seed, made)
	}
	if _, twice := runKeepers(t, 1, &pagestest.Server{Now: time.Now, Ignores: func(string) bool { return true }}); twice == 0 {
		t.Error("a server that ignores versions is not seen")
	}
}

func runKeepers(t *testing.T, seed uint64, server *pagestest.Server) (made, twice int) {
	t.Helper()
	const ttl, length = 10 * time.Second, 10 * time.Minute
	codec, err := randflake.NewCodec([]byte("sixteen byte key"))
	if err != nil {
		t.Fatal(err)
	}
	nodes := driver.NodeRange{First: 0, Nodes: 12, BlockSize: 1} // a few more than are used
	var mu sync.Mutex
	ids := map[randflake.ID]bool{}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(t0))
		end := time.Now().Add(length)
		var processes, late sync.WaitGroup
		for p := range uint64(6) {
			rng := rand.New(rand.NewPCG(seed, p))
			processes.Go(func() {
				for time.Now().Before(end) {
					network := &badNetwork{Server: server, rng: rand.New(rand.NewPCG(seed, rng.Uint64())), late: &late}
					k, err := lease.Start(t.Context(), open(network, 2, nodes), codec, lease.WithTTL(ttl), lease.WithErrorHandler(func(error) {}))
					if err != nil {
						t.Error(err)
						return
					}
					life := time.Now().Add(time.Duration(rng.Int64N(int64(2 * time.Minute))))
					for time.Now().Before(life) {
						var some [16]randflake.ID
						n, _, err := k.Fill(some[:])
						if err != nil && !errors.Is(err, randflake.ErrNoLease) && !errors.Is(err, randflake.ErrLeaseExpired) {
							t.Error(err)
						}
						mu.Lock()
						for _, id := range some[:n] {
							if made++; ids[id] {
								twice++
							}
							ids[id] = true
						}
						mu.Unlock()
						time.Sleep(time.Duration(rng.Int64N(int64(100 * time.Millisecond))))
					}
					network.mu.Lock()
					network.gone = rng.IntN(2) == 0
					network.mu.Unlock()
					_ = k.Close(t.Context())
				}
			})
		}
		processes.Wait()
		late.Wait()
	})
	return made, twice
}
