// Package etcdstore keeps leases of nodes in etcd, for a fleet, on a client of
// go.etcd.io/etcd/client/v3. Importing it registers etcd:// and, for TLS, etcds://, for example in
// TRACEFLAKE_STORE:
//
//	etcd://user:password@host:port,host:port/prefix
//	etcds://host:port,host:port/prefix?ca=FILE&cert=FILE&key=FILE
//
// The default port is 2379. The prefix may have several parts; the default is /traceflake/leases/.
// For other settings pass your own client to [New].
//
// The store needs etcd 3.4 or newer, with the right to read and write the keys of the prefix. Every
// change is one transaction that compares what it changes; every read is linearizable. The store
// has no clock.
//
// README.md describes the keys, and what happens after restores and copies.
package etcdstore
