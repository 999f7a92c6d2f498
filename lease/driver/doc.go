// Package driver is for authors of stores: it contains what a backend implements. Services need
// package lease and the package of their store.
//
// A backend implements [Objects]: two methods on small objects, which are replaced only if nobody
// else has written them since they were read. stores.New does the rest: the rule of granting, the
// store's identity and retries. Package memstore is a backend within one process.
//
// To write a store:
//
//  1. Implement [Objects]; leasetest.Run checks it in some seconds.
//  2. Return stores.New of it from a function New of your package, and from the function that you
//     pass to stores.Register; [ParseURL] helps.
//  3. Choose [Layout.BlocksPerPage]: few processes should write the same page, a page must not
//     exceed the server's largest object (a block takes up to 500 bytes), and all pages are read
//     when blocks run out.
//  4. Return a lease.Error where the cause of a failure is known: its Fix tells operators what to
//     do.
//  5. Run leasetest.Run against a real server, too, and processes with leases while you stop it.
//  6. Document what makes the server forget acknowledged writes, such as a failover, a restored
//     backup, a cache or a disk that is not synced, and in which of these cases [Object.Place]
//     changes.
//
// A store that registers its scheme can also be used from the command line: package
// cmd/traceflake/cli is the command, for a main function that imports the store.
package driver
