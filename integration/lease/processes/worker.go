//go:build unix

package processes

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/internal/calls"
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

// batch has IDs of one history, which a process has generated.
type batch struct {
	History string
	IDs     []randflake.ID
}

func init() {
	child.Main(worker, func(args []string) error { return work(args[0]) })
}

// work generates IDs as fast as its output is read, until it is killed.
func work(url string) error {
	store, err := stores.Open(url)
	if err != nil {
		return err
	}
	report := func(err error) { fmt.Fprintln(os.Stderr, err) }
	k, err := lease.Start(context.Background(), store, lease.FixedSecrets(calls.Secrets()),
		lease.WithTTL(workerTTL), lease.WithErrorHandler(report))
	if err != nil {
		return err
	}
	ids := make([]randflake.ID, 1024)
	out := gob.NewEncoder(os.Stdout)
	for {
		n, second, err := k.Fill(ids)
		if n == 0 && err != nil {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		history, err := historyOf(k, ids[0], second)
		if err != nil {
			return err
		}
		if err := out.Encode(batch{history, ids[:n]}); err != nil {
			return err
		}
	}
}

// historyOf returns the history under whose key an ID of a second was generated: a Keeper that has
// learned of another history may still use its last lease.
func historyOf(k *lease.Keeper, id randflake.ID, second time.Time) (string, error) {
	for _, h := range k.Histories() {
		codec, err := h.Codec(calls.Secrets())
		if err != nil {
			return "", err
		}
		if p := codec.Decode(id); p.Time.Equal(second) && p.Node < nodes {
			return h.ID, nil
		}
	}
	return "", errors.New("an ID of an unknown history")
}
