// Package etcdstore keeps leases of nodes in etcd, for a fleet: a
// [github.com/traceflake/traceflake/lease.Store] on a client of go.etcd.io/etcd/client/v3.
//
// # What it needs
//
// etcd 3.4 or newer, with the right to read and write the keys of one prefix.
// Every change is one transaction that compares what it changes and reads it back; every read is
// linearizable. A value other than what was sent is an error of the call. Nothing relies on etcd's
// leases, their TTL or any clock.
//
// A start takes one request, a renewal two, and so does an Acquire whose page has a free block, which
// nearly all have until most blocks are taken.
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
// Any other parameter is an error. For other settings, pass your own client to [New].
//
// # The keys
//
//	config      the description of the store
//	page-0000   the blocks of nodes 0 to 511, as package driver describes them
//	page-0001   …
//
// All of them are created with the store. There are 256 pages for all nodes, of up to 12 kB. Never
// delete a page or set an End back while processes run. A page that is gone is never created again.
// Reading is harmless:
//
//	etcdctl get --prefix /traceflake/leases/page-
//
// # Durability and failover
//
// etcd acknowledges a write when most members have it on disk. So every
// acknowledged grant survives the loss of any minority of members, an election,
// and a crash of all members. Grants are forgotten after
//
//   - a restore from a snapshot: call Raise before any process reaches it;
//   - members started with --force-new-cluster: the same;
//   - members started with --unsafe-no-fsync, if power fails.
//
// # Clocks
//
// etcd does not expose its time, so this store cannot refuse a client whose clock is far ahead: it
// takes a block until the lease's end by its own clock. That costs a block, not uniqueness.
package etcdstore
