// Package etcdstore keeps leases of nodes in etcd, for a fleet: a
// [github.com/traceflake/traceflake/randflake/lease.Store] on a client of
// go.etcd.io/etcd/client/v3.
//
// # What it needs
//
// etcd 3.4 or newer, with the right to read and write the keys of one prefix.
// Every change is one transaction that compares what it changes, every read is
// linearizable. Nothing relies on etcd's leases, their TTL or anybody's clock.
//
// Release and Renew take one round trip. So does Acquire, for a block that was
// never granted, or that the client knows to be free from an earlier answer;
// with neither at hand the first round trip brings 128 blocks, of which one is
// taken in the second. It looks at more of them only if most blocks are taken.
//
// # By URL
//
// Importing the package registers it for URLs, as they stand in
// TRACEFLAKE_STORE:
//
//	etcd://user:password@host:port,host:port/prefix
//	etcds://host:port,host:port/prefix?ca=FILE&cert=FILE&key=FILE
//
// List all members, so that a client finds another when one is away. User and
// password are those of etcd's authentication. The prefix, which may have
// several parts, is [DefaultPrefix] if it is missing. etcds uses TLS, with these
// parameters:
//
//	ca    certificates in PEM form that sign the members'; default: the system's
//	cert  the client's own certificate in PEM form, together with key
//	key   the client's private key in PEM form
//
// Any other parameter is an error. [New] takes a client that was made in any
// other way.
//
// # The keys
//
// Under the prefix, /traceflake/leases/ unless [WithPrefix] gives another:
//
//	config          {"schema":2,"block_size":8}
//	block/000008    {"from":"2027-01-02T15:04:05Z","until":"2027-01-02T15:14:05Z","nonce":"…","owner":"…"}
//	holder/NONCE    000008
//
// config is written with the first grant and then fixes the block size. A block
// has the number of its first node in its key; it has no key before its first
// grant. until is exclusive. nonce names the last write: its client may renew,
// unless it was a release; it is missing after Raise. owner says to operators
// who holds the block. holder/NONCE says which block has that nonce, and is
// there as long as one has. 10000 processes take about 3 MB.
//
// A block is free if until is not after the client's time. Its version is the
// one that etcd counts for its key. So never delete a key of a block or set its
// until back while processes run: grants would be forgotten and IDs made twice.
// Reading is harmless:
//
//	etcdctl get --prefix /traceflake/leases/block/
//
// # Older versions
//
// Keys of schema 1 are brought to schema 2 by the first call of this version,
// except List, which only looks and refuses them.
// One transaction changes config; from then on an older process takes no block.
// Then the blocks are rewritten, as they are at that moment, in transactions of
// 63; from then on an older process cannot renew. Then the store is used. No
// grant is lost, whenever a client that does this is stopped: the next one goes
// on. Older processes use up what they were granted and get nothing more, so
// restart them with this version within one TTL.
//
// # Durability and failover
//
// etcd acknowledges a write when most members have it on disk. So every answered
// grant outlives the loss of any minority of members, an election, and a crash
// of all of them; while there is no majority no call is answered, and processes
// use up what they have. Grants are forgotten by
//
//   - a restore from a snapshot: call [Store.Raise] before any process reaches it;
//   - members started with --force-new-cluster: the same;
//   - members started with --unsafe-no-fsync, if power fails.
//
// # Clocks
//
// etcd tells its clients no time. So, unlike other stores, this one cannot
// refuse a client whose clock is far ahead, with
// [github.com/traceflake/traceflake/randflake/lease.ErrClockAhead]: such a
// client takes one block until its own idea of the lease's end. That costs a
// block, not uniqueness.
package etcdstore
