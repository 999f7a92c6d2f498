// Package etcdstore keeps leases of nodes in etcd, for a fleet: a
// [github.com/traceflake/traceflake/lease.Store] on a client of
// go.etcd.io/etcd/client/v3.
//
// # What it needs
//
// etcd 3.4 or newer, with the right to read and write the keys of one prefix.
// Every change is one transaction that compares what it changes; every read is
// linearizable. Nothing relies on etcd's leases, their TTL or any clock.
// The same transaction reads the value back, and an answer other than what was sent is an error of the
// call. Each page has a checksum, which every read verifies.
//
// A renewal takes two round trips, and so does an Acquire whose page has a free block, which nearly
// all have until most blocks are taken. A start takes one more, for the description of the store.
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
//	config      the description of the store
//	page-0000   the blocks of nodes 0 to 511
//	page-0001   …
//
// All of them are created with the store.
//
// Each page is one value: lines of JSON with the node, version, from, until, nonce
// and owner of each block, and a checksum. Package
// [github.com/traceflake/traceflake/lease/driver/pages] describes them. There are
// 256 pages for all nodes; a full one has 12 kB. until is exclusive.
//
// A block is free if until is not after the client's time. So never delete a
// page or set an until back while processes run. A page that is gone is never created again. Reading
// is harmless:
//
//	etcdctl get --prefix /traceflake/leases/page-
//
// # Durability and failover
//
// etcd acknowledges a write when most members have it on disk. So every
// acknowledged grant survives the loss of any minority of members, an election,
// and a crash of all members; while there is no majority no call is answered,
// and processes use their grants to the end. Grants are forgotten after
//
//   - a restore from a snapshot: call Raise before any process reaches it;
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
// Tests that stop and kill members of a real etcd are in integration/lease/etcdstore.
package etcdstore
