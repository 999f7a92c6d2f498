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
// To use a fleet's secret instead, give each host its own nodes; two hosts with
// the same secret and nodes make duplicates. A file that is used with its nodes
// for the first time may replace a lost one, so it grants nothing for one longest
// TTL ([driver.Options.LongestTTL], which package setup takes from
// TRACEFLAKE_TTL). That wait is measured by the host's clock: do not step it back
// while a file is lost. A store that is opened for a fleet's secret
// ([driver.SharedSecret]) is refused without nodes.
//
// Nothing waits with the file's own secret ([driver.OwnSecret]), whatever the
// nodes: a new file has a new secret.
//
// A machine that is restored from a snapshot more than once, or beside the one
// that the snapshot was taken of, has a copy of the file. So has one that is
// started from an image with a file in it. The copies have one secret and grant
// the same nodes. Where Linux's vmclock has a generation counter, and where
// [Store.Restored] is called, a process that was running refuses the file after the
// restore, with [ErrCopied]; one that is started later cannot tell. Before such a
// machine makes IDs move the file away, and with a fleet's secret give the machine
// other nodes; or use a store that the machines share.
//
// # The file
//
// It has mode 0600: anyone who can read the secret can decode the IDs, and
// anyone who can write the file can break their uniqueness.
//
// It has one bucket, traceflake:
//
//	identity            {"format":1,"id":"…","secret":"…"}: 16 random bytes each, in base64
//	config, page-…      the blocks, as package driver/pages describes them
//	share-FIRST+COUNT   until when the file grants nothing of these nodes
//
// A block that is not on its page was never granted. Only a Release moves its end
// back. Use List to read the blocks; `bbolt` of go.etcd.io/bbolt/cmd reads and
// checks the file itself.
//
// # Durability
//
// An acknowledged grant survives a crash of the process or the machine, and a
// power failure. After restoring a copy of the file call Raise before
// any process uses it: the copy lacks the grants made since. If the file is
// lost, do nothing: the next one has another secret, or waits.
//
// Tests with processes that are killed are in integration/lease/boltstore.
package boltstore
