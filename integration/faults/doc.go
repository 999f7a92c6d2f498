// Package faults puts a bad network between the processes of a test and their
// store: messages that are late, lost or doubled. Late messages may arrive after
// their client gave up, after the end of the lease that they request, and after
// the client's end.
//
// [Postgres], [Etcd] and [HTTP] stand between a client and a server and speak its
// protocol. [Store] does the same within a process, for a store without a
// server.
package faults
