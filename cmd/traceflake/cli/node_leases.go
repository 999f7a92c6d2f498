package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
)

// nodeLeases reads the current leases of nodes for inspect, which works without them: a store that
// fails is reported once, and not queried again.
type nodeLeases struct {
	cmd    *cobra.Command
	store  stores.Store // nil: leases are not shown
	now    time.Time
	blocks map[uint32]lease.Grant // that were read, by node
}

// answerTimeout is how long IDs wait for a store.
const answerTimeout = time.Second

// keyring returns the secret that the store keeps, or nil.
func (l *nodeLeases) keyring() (k *randflake.Keyring) {
	l.query(func(ctx context.Context) (err error) {
		k, err = ownKeyring(ctx, l.store)
		return err
	})
	return k
}

// of describes the lease that a node is in now, or returns "" if it is unknown.
func (l *nodeLeases) of(node uint32) string {
	b, known := l.blocks[node]
	if !known && !l.query(func(ctx context.Context) (err error) {
		b, err = blockOf(ctx, l.store, node)
		return err
	}) {
		return ""
	}
	l.blocks[node] = b
	if b.Version == 0 {
		return state(b, l.now)
	}
	return fmt.Sprintf("block %d+%d, %s", b.Node, b.Nodes, state(b, l.now))
}

// query calls call, which queries the store, and reports whether the store answered.
func (l *nodeLeases) query(call func(context.Context) error) bool {
	if l.store == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(l.cmd.Context(), answerTimeout)
	defer cancel()
	err := call(ctx)
	if err != nil {
		fmt.Fprintln(l.cmd.ErrOrStderr(), "traceflake: leases are not shown:", err)
		l.store = nil
	}
	return err == nil
}

// blockOf reads the block that a node belongs to, or returns a zero Grant if the node is not in the
// store. The block has version 0 if it was never granted.
func blockOf(ctx context.Context, s stores.Store, node uint32) (b lease.Grant, err error) {
	d, err := s.Describe(ctx)
	switch {
	case err != nil && !errors.Is(err, lease.ErrRaising):
		return b, err
	case !inStore(node, d):
		return b, nil
	}
	return s.Get(ctx, node-node%d.BlockSize)
}
