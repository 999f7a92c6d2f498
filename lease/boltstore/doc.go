// Package boltstore keeps leases in a bbolt file: for the processes of one
// host, without any server.
//
// The file is opened under bbolt's file lock for the duration of each call
// only, and synced before a grant is returned. A call waits up to 2 s for the
// lock. The file must be on a local file system with reliable locks and syncs,
// not on a network share, and only processes of one host may share it.
//
// Importing the package registers it for URLs of the form bolt:PATH, for
// example in TRACEFLAKE_STORE. They have no parameters; everything after the
// colon is the path.
//
// # Secret
//
// Each file is created with its own random secret ([driver.Embedded]), so it may be
// created by the first process that uses it ([driver.Ensure]), at once with others: no
// other store has its secret. A host that lost its file gets a new one: its old and its
// new IDs are under different secrets. Several hosts that share a secret need
// a store that they share, too.
//
// A machine that is restored from a snapshot more than once, or while the original still runs, has
// a copy of the file. So does one that is started from an image that contains a file. The copies
// have one secret and grant the same nodes. Where Linux's vmclock has a generation counter, and
// where OnRestore is called on the store, a process that was running refuses the file after the
// restore, with [ErrCopied]; one that is started later cannot tell. Before such a machine generates
// IDs, move the file away; or use a store that the machines share.
//
// # The file
//
// It has mode 0600: anyone who can read the secret can decode the IDs, and
// anyone who can write the file can break their uniqueness. It has one bucket,
// traceflake, with 16 random bytes under the key secret, and the objects of package
// package driver. Use List to read the blocks; `bbolt` of go.etcd.io/bbolt/cmd reads
// and checks the file itself.
//
// # Durability
//
// An acknowledged grant survives a crash of the process or the machine, and a
// power failure. After restoring a copy of the file call Raise before
// any process uses it: the copy lacks the grants made since. If the file is
// lost, do nothing: the next one has another secret.
package boltstore
