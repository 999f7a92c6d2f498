// Package filestore keeps leases in a directory: for the processes of one host, without any server.
// Importing it registers file:DIR, for example in TRACEFLAKE_STORE; DIR is the whole path.
//
// The first process creates the directory, even if several start at once, with a secret file: see
// [Secret] and [stores.Ensure]. Every object of package driver is a file. A write creates a file
// under another name, syncs and renames it, under a lock of the directory, and syncs the directory
// before the call returns. So an acknowledged grant survives a crash of the process or the machine,
// and a power failure.
//
// The directory must be on a local file system with working locks and syncs, and only processes of
// one host may share it. While it cannot be reached, locked or written, the store is unavailable:
// calls return an error, and succeed when the directory is back.
//
// A directory that was copied, or is on a machine that was started again, has another place, so it
// gets a history of its own. README.md says which copies are not noticed.
package filestore
