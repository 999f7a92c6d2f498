//go:build unix

package processes

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/lease"
	// the stores that workers open by a URL
	_ "github.com/traceflake/traceflake/lease/etcdstore"
	_ "github.com/traceflake/traceflake/lease/filestore"
	_ "github.com/traceflake/traceflake/lease/k8sstore"
	_ "github.com/traceflake/traceflake/lease/pgstore"
	_ "github.com/traceflake/traceflake/lease/s3store"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
)

const (
	worker    = "worker" // the kind of the processes that Run starts
	workerTTL = 2 * time.Second
)

func init() {
	child.Main(worker, func(args []string) error { return work(args[0]) })
}

// work generates IDs as fast as its output is read, until it is asked to end or is killed.
func work(url string) error {
	end, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	store, err := stores.Open(url)
	if err != nil {
		return err
	}
	report := func(err error) { fmt.Fprintln(os.Stderr, err) }
	k, err := lease.Start(end, store, secretOf(store), lease.WithTTL(workerTTL),
		lease.WithErrorHandler(report))
	if err != nil {
		return err
	}
	ids := make([]randflake.ID, 1024)
	buf := make([]byte, 0, 8*len(ids))
	for end.Err() == nil {
		n, _, err := k.Fill(ids)
		if n == 0 && err != nil {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		buf = buf[:0]
		for _, id := range ids[:n] {
			buf = binary.BigEndian.AppendUint64(buf, uint64(id))
		}
		if _, err := os.Stdout.Write(buf); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), workerTTL)
	defer cancel()
	_ = k.Close(ctx) // if the store is unreachable, only the remaining seconds are lost
	_ = store.Close()
	return nil
}

// secretOf returns the store's own secret if it has one, otherwise that of a fleet.
func secretOf(s stores.Store) lease.Secret {
	if s.KeepsSecret() {
		return stores.OwnSecret(s)
	}
	return func(context.Context) (*randflake.Codec, error) {
		return randflake.NewCodec([]byte("one fleet's code"))
	}
}
