package lease

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrCloned is passed to the error handler if a copy of this process was found to hold the same
// grant, or if this machine was restored from a snapshot. The grant is dropped and another one
// acquired. If neither a snapshot nor a copied machine is involved, the network to the store
// repeats messages.
var ErrCloned = errors.New("lease: this machine was cloned")

// Any request may be lost, late or repeated, and any response lost. That is harmless because every
// write has a nonce that is never drawn twice:
//
//   - A late Renew compares the nonce and the version for which it was sent. It succeeds only if
//     nothing was written since, and then the Keeper still knows its nonce.
//   - A late Acquire may take a block for a nonce that is no longer in use. The block stays unused
//     until the grant's end. If the late Acquire grants the Keeper's own block again, the start has
//     changed, and the Keeper drops its grant.
//   - A grant that a repeated Acquire found may also have been found by a copy of the process. No
//     IDs are generated with it before the store has acknowledged a renewal.
//
// So after a call without a response the Keeper reads the block and acts on its content; if it
// cannot read the block, it uses its grant to the end.

// answer is the meaning of a stored block to the client that renews it.
type answer int

const (
	written   answer = iota // the renewal was written
	late                    // an earlier renewal by the Keeper was written, without its knowledge
	unwritten               // nothing was written yet; a proposal may still arrive
	ended                   // the store has, or needs, another history
	forgotten               // the store lacks what it acknowledged: it was set back
	copied                  // another process wrote instead, which can only be a copy of this one
	// the block was granted again, after the lease's end
	lost
)

// meaning returns what a stored block means that the store returned for a renewal, or that was read
// after a renewal that it did not acknowledge. The latter continues the grant only if the block has
// a nonce that the Keeper proposed for this very grant. A grant is known by the nonce of its
// Acquire and its start: a late Acquire may have granted the block again under the same nonce.
func (t *term) meaning(stored Grant, acknowledged bool) answer {
	mine := t.grant
	sameGrant := stored.Acquired == mine.Acquired && stored.Start.Equal(mine.Start)
	sameNonce := stored.Nonce == mine.Nonce
	sameVersion := stored.Version == mine.Version
	switch {
	case stored.Version < mine.Version || stored.End.Before(mine.End),
		sameVersion != (sameGrant && sameNonce): // a version is written once, with one nonce
		return forgotten
	case !sameGrant && stored.Start.Before(mine.End):
		return forgotten
	case !sameGrant:
		return lost
	case acknowledged:
		return written
	case sameVersion:
		return unwritten
	case slices.Contains(t.pending, stored.Nonce) && stored.Version == mine.Version+1:
		return late
	}
	return copied
}

// explain returns the reason why a grant was dropped, and an error for users.
func (a answer) explain(t *term) (reason, error) {
	switch a {
	case forgotten:
		return contradicted, fmt.Errorf("%w: node %d: it lacks a lease until %s that it "+
			"acknowledged. IDs generated since %s in its history %s may be equal. %s",
			ErrContradicted, t.grant.Node, text(t.grant.End), text(t.seen), t.grant.Store,
			t.keeper.healing())
	case copied:
		return cloned, fmt.Errorf("%w: node %d: a copy of this process renewed the lease",
			ErrCloned, t.grant.Node)
	}
	return taken,
		fmt.Errorf("lease: node %d: %w: the block was granted again", t.grant.Node, ErrLost)
}

func text(t time.Time) string { return t.UTC().Format(time.RFC3339) }
