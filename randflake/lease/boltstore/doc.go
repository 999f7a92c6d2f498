// Package boltstore keeps leases in a bbolt file: for the processes of one
// host, without any server.
//
// The file is opened only for the moment of a grant, which bbolt does under a
// file lock, and synced before a grant is answered. It must lie on a local file
// system whose locks and syncs are real, not on a network share, and be shared
// by the processes of one host alone.
//
// # Secrets
//
// A file is made with a random secret of its own ([Store.Codec]). So two hosts
// never share one, nor does a host that lost its file: what it made before and
// what it makes then are IDs under two secrets.
//
// To use a fleet's secret in its place the host must be given nodes of its own
// with [WithNodes]; two hosts with one secret and the same nodes make
// duplicates. A file that is new to its nodes may stand for one that was lost,
// so it grants nothing for one longest TTL ([WithMaxTTL]). That wait is
// measured by the host's clock: do not step it back while a file is lost.
//
// # The file
//
// It has mode 0600: who can read the secret can decode the IDs, and who can
// write it can break their uniqueness. Numbers are big-endian.
//
//	bucket  key                      value
//	meta    schema                   8 bytes: 1
//	meta    block_size               8 bytes: nodes a block
//	meta    id                       16 random bytes: tells one file from another
//	meta    secret                   16 random bytes: the file's own secret
//	ranges  first, count (4+4)       8 bytes: the Unix second WithNodes was first used with them
//	blocks  first node (4)           start (8) and granted_until (8) in Unix seconds, version (8),
//	                                 holder (16), CRC-32C of key and value (4)
//
// A block without a key was never granted. Nothing but a Release ever moves
// granted_until back. Use [Store.List] to read the blocks and [Store.Raise]
// after restoring a copy; `bbolt` of go.etcd.io/bbolt/cmd reads and checks the
// file itself.
package boltstore
