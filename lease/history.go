package lease

import (
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

// Reasons of a [History].
const (
	Created      = "created"      // the store was
	Moved        = "moved"        // the store was not where its history was begun
	Contradicted = "contradicted" // the store had forgotten what it acknowledged
	Rekey        = "rekey"        // by an operator: traceflake lease rekey
)

// History is a period of a store within which it forgets nothing: its blocks were never granted
// when it was begun. It is public.
type History struct {
	// ID is 128 random bits as 32 lower-case hex digits.
	ID string
	// Begun is the time when it was begun, in whole seconds: by the store's clock, if it has one,
	// otherwise by that of the process that began it.
	Begun time.Time
	// Reason is one of the constants of this package: [Created], [Moved] …
	Reason string
	// Secret is the fingerprint of its secret; see Fingerprint. It is "" in a store without one.
	Secret string `json:",omitempty"`
}

// Fingerprint returns the text by which a history recognizes its secret: 16 hex digits that reveal
// nothing about the secret and differ between histories.
func (h History) Fingerprint(secret *randflake.Codec) string {
	key := secret.Derive("lease store " + h.ID)
	return hex.EncodeToString(key[:8])
}

// Find returns the secret of the history among those of a keyring, by its fingerprint. The error
// wraps [ErrWrongSecret].
func (h History) Find(secrets *randflake.Keyring) (*randflake.Codec, error) {
	for _, secret := range secrets.Codecs() {
		if h.Fingerprint(secret) == h.Secret {
			return secret, nil
		}
	}
	return nil, fmt.Errorf("%w: history %s", ErrWrongSecret, h.ID)
}

// Codec returns the codec of the history's IDs if the keyring has its secret; see [HistoryCodec].
// The error wraps [ErrWrongSecret].
func (h History) Codec(secrets *randflake.Keyring) (*randflake.Codec, error) {
	secret, err := h.Find(secrets)
	if err != nil {
		return nil, err
	}
	return HistoryCodec(secret, h.ID)
}

// HistoryCodec returns the codec that encrypts the IDs leased in a history, [Grant.Store]. Its key
// is derived from the secret and the history's ID, so one secret serves any number of stores and
// histories. It returns an error for a codec without a secret.
func HistoryCodec(secret *randflake.Codec, id string) (*randflake.Codec, error) {
	if _, err := secret.Encode(randflake.Parts{Time: time.Unix(randflake.Epoch, 0)}); err != nil {
		return nil, fmt.Errorf("lease: secret: %w", err)
	}
	key := HistoryKey(secret, id)
	return randflake.NewCodec(key[:])
}

// HistoryKey returns the key of [HistoryCodec], for verifiers that cannot reach the store. It does
// not reveal the secret.
func HistoryKey(secret *randflake.Codec, id string) [16]byte {
	key := secret.Derive("history " + id)
	return [16]byte(key[:16])
}

// Description holds what a store records of itself.
type Description struct {
	// History is the present one, also while it is being begun.
	History
	// Earlier histories, newest first: those that were complete. The store keeps 64, and any more
	// that ended less than [MaxTTL] ago, with whose leases IDs may still be generated.
	Earlier []History `json:",omitempty"`
	// Created is the time of the store's creation.
	Created time.Time
	// The store grants nodes [First, First+Nodes), in blocks of BlockSize.
	First, Nodes, BlockSize uint32
	// LongestTTL is the longest TTL that is granted.
	LongestTTL time.Duration
	// Keyless is set if the store was created without a secret, for [Nodes]. It never begins a
	// history without an operator.
	Keyless bool `json:",omitempty"`
}

// Histories returns the present history and the earlier ones, newest first.
func (d Description) Histories() []History { return append([]History{d.History}, d.Earlier...) }

// Merge returns the histories of the description and those that were known before, the present one
// first, the others newest first: a store that was set back has forgotten some.
func (d Description) Merge(known []History) []History {
	all := d.Histories()
	for _, h := range known {
		if !slices.ContainsFunc(all, func(o History) bool { return o.ID == h.ID }) {
			all = append(all, h)
		}
	}
	slices.SortStableFunc(all[1:], func(a, b History) int { return b.Begun.Compare(a.Begun) })
	return all
}

// Blocks returns the number of blocks.
func (d Description) Blocks() int { return int(d.Nodes / max(d.BlockSize, 1)) }

// BeginRequest asks for a new history of a store.
type BeginRequest struct {
	// Leaves is the ID of the history that the caller saw, and that must not go on. With "", any
	// complete history that was begun here will do.
	Leaves string
	// Reason is [Moved], [Contradicted] or [Rekey]. With Moved, a history after a begin that was
	// interrupted gets the reason of that begin.
	Reason string
	// Now is the client's wall clock, for a store without a clock.
	Now time.Time
	// Secrets are the process's. The new history gets the secret of the one that it leaves, which
	// must be among them.
	Secrets *randflake.Keyring
	// Secret, if not nil, is the secret of the new history instead: only an operator changes it.
	Secret *randflake.Codec
	// Known are histories that the caller knows: a store that was set back may have lost them from
	// its list.
	Known []History
}
