// Package etcdstore keeps leases of nodes in etcd, for a fleet: a
// [github.com/traceflake/traceflake/lease.Store] on a client of
// go.etcd.io/etcd/client/v3.
//
// # What it needs
//
// etcd 3.4 or newer, with the right to read and write the keys of one prefix.
// Every change is one transaction that compares what it changes; every read is
// linearizable. Nothing relies on etcd's leases, their TTL or any clock.
//
// Release and Renew take one round trip. So does Acquire, for a block that was
// never granted, or that the client knows to be free from an earlier response;
// otherwise the first round trip reads 128 blocks, and the second takes one of
// them. It reads more only if most blocks are taken.
//
// # By URL
//
// Importing the package registers it for URLs, for example in TRACEFLAKE_STORE:
//
//	etcd://user:password@host:port,host:port/prefix
//	etcds://host:port,host:port/prefix?ca=FILE&cert=FILE&key=FILE
//
// List all members, so that a client can use another if one is down. User and
// password are those of etcd's authentication. The prefix may have several
// parts; the default is [DefaultPrefix]. etcds uses TLS, with these parameters:
//
//	ca    certificates in PEM form that sign the members'; default: the system's
//	cert  the client's own certificate in PEM form, together with key
//	key   the client's private key in PEM form
//
// Any other parameter is an error. For other settings, pass your own client to
// [New].
//
// # The keys
//
// Under the prefix, /traceflake/leases/ unless [WithPrefix] gives another:
//
//	config          {"schema":2,"block_size":8}
//	block/000008    {"from":"2027-01-02T15:04:05Z","until":"2027-01-02T15:14:05Z","nonce":"…","owner":"…"}
//	holder/NONCE    000008
//
// config is written with the first grant and fixes the block size. The key of a
// block has the number of its first node; it does not exist before the first
// grant. until is exclusive. nonce identifies the last write: its client may
// renew, unless it was a release; it is missing after Raise. owner tells
// operators who holds the block. holder/NONCE names the block with that nonce,
// and exists while there is one. 10000 processes take about 3 MB.
//
// A block is free if until is not after the client's time. Its version is
// etcd's version of its key. So never delete a block's key or set its until
// back while processes run: grants would be forgotten and IDs made twice.
// Reading is harmless:
//
//	etcdctl get --prefix /traceflake/leases/block/
//
// # Older versions
//
// Keys of schema 1 are migrated to schema 2 by the first call of this version,
// except List, which is read-only and refuses them. One transaction changes
// config; from then on an older process cannot acquire a block. Then the blocks
// are rewritten, as they are at that moment, in transactions of 63; from then
// on an older process cannot renew. Only then is the store used. No grant is
// lost if a client is stopped during the migration: the next one continues it.
// Older processes can use their current grants but get no others, so restart
// them with this version within one TTL.
//
// # Durability and failover
//
// etcd acknowledges a write when most members have it on disk. So every
// acknowledged grant survives the loss of any minority of members, an election,
// and a crash of all members; while there is no majority no call is answered,
// and processes use their grants to the end. Grants are forgotten after
//
//   - a restore from a snapshot: call [Store.Raise] before any process reaches it;
//   - members started with --force-new-cluster: the same;
//   - members started with --unsafe-no-fsync, if power fails.
//
// # Clocks
//
// etcd does not expose its time. So, unlike other stores, this one cannot
// refuse a client whose clock is far ahead with
// [github.com/traceflake/traceflake/lease.ErrClockAhead]: such a
// client takes one block until the lease's end by its own clock. That costs a
// block, not uniqueness.
//
// The repository tests this package against a real etcd in integration/lease/etcdstore.
package etcdstore
