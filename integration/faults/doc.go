// Package faults puts a bad network between the processes of a test and their
// store: messages that are late, lost or doubled. Late messages may arrive after
// their client gave up, after the end of the lease that they request, and after
// the client's end.
//
// [HTTP] and [Postgres] stand between a client and its servers: the first for S3, Kubernetes and
// etcd, the second for PostgreSQL's own protocol.
package faults
