// Package filestore keeps leases in a directory: for the processes of one host, without any server.
// Importing it registers file:DIR, for example in TRACEFLAKE_STORE; everything after the colon is
// the path.
//
// The directory has a secret of its own ([driver.Embedded]), so the first process that uses it
// creates it ([driver.Ensure]), at once with others: no other store has its secret. Every object of
// package driver is a file, which is written under another name, synced and renamed, under a lock
// of the directory, and the directory is synced before the call returns. An acknowledged grant
// survives a crash of the process or the machine, and a power failure.
//
// The directory must be on a local file system with working locks and syncs, and only processes of
// one host may share it. One that cannot be reached, locked or written is a store that is
// unavailable: calls return an error, and work when it is back.
//
// A directory that was put back from a copy is another directory, and is refused. A machine that
// was restored from a snapshot has a copy as well: see [ErrCopied]. docs/file.md says what to do.
package filestore
