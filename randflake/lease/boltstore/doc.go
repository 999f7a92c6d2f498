// Package boltstore keeps leases in a bbolt file: for the processes of one
// host, without any server.
//
// The file is opened only for the moment of a grant, which bbolt does under a
// file lock, and synced before a grant is answered. It must lie on a local file
// system whose locks and syncs are real, not on a network share, and be shared
// by the processes of one host alone.
//
// # By URL
//
// Importing the package registers it for URLs of the form bolt:PATH, as they
// stand in TRACEFLAKE_STORE. They have no parameters; everything after the colon
// is the path.
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
// [CheckUse] refuses a fleet's secret without nodes.
//
// A machine that is restored from a snapshot more than once, or beside the one
// that the snapshot was taken of, has a copy of the file. So has one that is
// started from an image with a file in it. The copies have one secret and grant
// the same nodes. Where Linux's vmclock has a generation counter, a process that
// was running refuses the file after the restore, with [ErrCopied]; one that is
// started later cannot tell. Before such a machine makes IDs move the file away,
// and with a fleet's secret give the machine other nodes; or use a store that the
// machines share.
//
// # The file
//
// It has mode 0600: whoever can read the secret can decode the IDs, and whoever
// can write it can break their uniqueness. Numbers are big-endian.
//
//	bucket  key                      value
//	meta    schema                   8 bytes: 2
//	meta    block_size               8 bytes: nodes a block
//	meta    id                       16 random bytes: tells one file from another
//	meta    secret                   16 random bytes: the file's own secret
//	ranges  first, count (4+4)       8 bytes: the Unix second WithNodes was first used with them
//	blocks  first node (4)           start (8) and granted_until (8) in Unix seconds, version (8),
//	                                 nonce of the last write (16), owner (0 to 128),
//	                                 CRC-32C of key and value (4)
//
// A block without a key was never granted. Only a Release moves granted_until
// back. Use [Store.List] to read the blocks; `bbolt` of go.etcd.io/bbolt/cmd
// reads and checks the file itself.
//
// # Older versions
//
// A file of schema 1 is brought to schema 2 when this version first opens it, in
// one transaction. Secret and grants are kept, the id is drawn anew: processes
// of the older version, which know the file by it, are refused with
// [ErrReplaced]. They use up what they were granted and get nothing more, so
// restart them with this version within one TTL.
//
// # What outlives what
//
// An answered grant outlives a crash of the process, of the machine, and a loss
// of power. After restoring a copy of the file call [Store.Raise] before any
// process uses it: the copy has forgotten what was granted since. If the file is
// lost, do nothing: the next one has another secret, or waits.
package boltstore
