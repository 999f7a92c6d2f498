// Package faults puts a bad network between the processes of a test and their
// store: messages that are late, lost or doubled. What is late may arrive after
// its client gave up, after the lease that it asks for, and after the client's
// death.
//
// [Postgres] and [Etcd] stand between a client and a server and speak its
// protocol. [Store] does the same within a process, for a store without a
// server.
package faults
