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
// taken in the second. Only when most blocks are taken it looks at more of them.
//
// # The keys
//
// Under the prefix, /traceflake/leases/ unless [WithPrefix] gives another:
//
//	config          {"schema":1,"block_size":8}
//	block/000008    {"granted_from":"2027-01-02T15:04:05Z","granted_until":"2027-01-02T15:14:05Z","holder":"…"}
//	holder/NONCE    000008
//
// config is written with the first grant and then fixes the block size. A block
// has the number of its first node in its key; it has no key before its first
// grant. granted_until is exclusive. holder, who may renew, is a random name
// for each grant; where nobody may it is missing. holder/NONCE says which block
// has that holder, and is there as long as one has. 10000 processes take about
// 3 MB.
//
// A block is free when granted_until is not after the client's time. Its version
// is the one that etcd counts for its key. So never delete a key of a block or
// set its granted_until back while processes run: grants would be forgotten and
// IDs made twice. Reading is harmless:
//
//	etcdctl get --prefix /traceflake/leases/block/
//
// # Durability
//
// etcd acknowledges a write when most members have it on disk. After a restore
// from a snapshot grants made since then are forgotten: call [Store.Raise]
// before the processes get at it. The same holds for members started with
// --force-new-cluster or --unsafe-no-fsync.
//
// # Clocks
//
// etcd tells its clients no time. So, unlike other stores, this one cannot
// refuse a client whose clock is far ahead, with
// [github.com/traceflake/traceflake/randflake/lease.ErrClockAhead]: such a
// client takes one block until its own idea of the lease's end. That costs a
// block, not uniqueness.
package etcdstore
