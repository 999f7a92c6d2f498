package etcdstore

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

func (s *Store) configKey() string              { return s.prefix + "config" }
func (s *Store) blockPrefix() string            { return s.prefix + "block/" }
func (s *Store) blockKey(node uint32) string    { return s.blockPrefix() + nodeText(node) }
func (s *Store) holderKey(holder string) string { return s.prefix + "holder/" + holder }

// nodeText has as many digits as the highest node, so that keys sort.
func nodeText(node uint32) string { return fmt.Sprintf("%06d", node) }

func hasNode(kv *mvccpb.KeyValue, node uint32) bool {
	return strings.HasSuffix(string(kv.Key), "/"+nodeText(node))
}

// record is a block as stored: the etcd revision that wrote it, 0 if there is
// none, and the text.
type record struct {
	block    driver.Block
	revision int64
	text     string
}

// value is the content of a block's key. Its version is etcd's own, which
// counts the writes of a key.
type value struct {
	From  *time.Time `json:"from,omitempty"`
	Until *time.Time `json:"until,omitempty"`
	Nonce string     `json:"nonce,omitempty"`
	Owner string     `json:"owner,omitempty"`
}

func encode(b driver.Block) string {
	v := value{Nonce: b.Nonce, Owner: b.Owner}
	if !b.Start.IsZero() {
		from := b.Start.UTC()
		v.From = &from
	}
	if !b.GrantedUntil.IsZero() {
		until := b.GrantedUntil.UTC()
		v.Until = &until
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "" // a year past 9999, which no block has: matches nothing
	}
	return string(text)
}

// decode reads what is stored for a block; never is the block before its first
// grant.
func decode(never driver.Block, kv *mvccpb.KeyValue) (record, error) {
	var v value
	if err := json.Unmarshal(kv.Value, &v); err != nil {
		return record{}, fmt.Errorf("key %q does not hold a block: %w", kv.Key, err)
	}
	if v.Until == nil {
		return record{}, fmt.Errorf("key %q does not hold a block: until is missing", kv.Key)
	}
	b := never
	b.Nonce, b.Owner, b.Version = v.Nonce, v.Owner, uint64(kv.Version)
	if v.From != nil {
		b.Start = v.From.UTC().Truncate(time.Second)
	}
	b.GrantedUntil = v.Until.UTC()
	if cut := b.GrantedUntil.Truncate(time.Second); cut.Before(b.GrantedUntil) {
		b.GrantedUntil = cut.Add(time.Second) // written by hand
	}
	return record{block: b, revision: kv.ModRevision, text: string(kv.Value)}, nil
}

// one decodes the stored block from one key, or none.
func one(never driver.Block, kvs []*mvccpb.KeyValue) (record, error) {
	if len(kvs) == 0 {
		return record{block: never}, nil
	}
	return decode(never, kvs[0])
}

// records pairs the keys of the blocks from to to with the blocks.
func records(nodes driver.NodeRange, from, to int, kvs []*mvccpb.KeyValue) ([]record, error) {
	all := make([]record, 0, to-from)
	for i := from; i < to; i++ {
		r := record{block: nodes.Block(i)}
		if len(kvs) > 0 && hasNode(kvs[0], r.block.Node) {
			var err error
			if r, err = decode(r.block, kvs[0]); err != nil {
				return nil, err
			}
			kvs = kvs[1:]
		}
		all = append(all, r)
	}
	if len(kvs) > 0 {
		return nil, fmt.Errorf("%w: key %q is not a block of %d nodes", lease.ErrSchemaVersion, kvs[0].Key, nodes.BlockSize)
	}
	return all, nil
}
