// Package boltstore keeps leases in a bbolt file: for the processes of one
// host, without any server.
//
// The file is opened under bbolt's file lock for the duration of each call
// only, and synced before a grant is returned. It must be on a local file
// system with reliable locks and syncs, not on a network share, and only
// processes of one host may share it.
//
// # By URL
//
// Importing the package registers it for URLs of the form bolt:PATH, for
// example in TRACEFLAKE_STORE. They have no parameters; everything after the
// colon is the path.
//
// # Secrets
//
// Each file is created with its own random secret ([Store.Codec]). So two hosts
// never share a secret, and a host that lost its file gets a new one: its old
// and its new IDs are under different secrets.
//
// To use a fleet's secret instead, give each host its own nodes with
// [WithNodes]; two hosts with the same secret and nodes make duplicates. A file
// that is used with its nodes for the first time may replace a lost one, so it
// grants nothing for one longest TTL ([WithMaxTTL]). That wait is measured by
// the host's clock: do not step it back while a file is lost. [CheckUse]
// refuses a fleet's secret without nodes.
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
// It has mode 0600: anyone who can read the secret can decode the IDs, and
// anyone who can write the file can break their uniqueness. Numbers are
// big-endian.
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
// A file of schema 1 is migrated to schema 2 when this version first opens it,
// in one transaction. Secret and grants are kept, but the file gets a new id:
// processes of the older version, which identify the file by it, are refused
// with [ErrReplaced]. They can use their current grants but get no others, so
// restart them with this version within one TTL.
//
// # Durability
//
// An acknowledged grant survives a crash of the process or the machine, and a
// power failure. After restoring a copy of the file call [Store.Raise] before
// any process uses it: the copy lacks the grants made since. If the file is
// lost, do nothing: the next one has another secret, or waits.
//
// Tests with processes that are killed are in integration/lease/boltstore.
package boltstore
