// Package driver is for authors of stores: it contains the engine that grants blocks of nodes, and
// the registry of stores by URL. Services need package lease and the package of their store.
//
// A backend implements [Objects]: three methods on small objects, which are replaced only if nobody
// else has written them since they were read. [New] does the rest: the rule of granting, the
// store's identity, raises and retries. [Memory] is a backend within one process.
//
// To write a store:
//
//  1. Implement [Objects]; leasetest.Run checks it in some seconds.
//  2. Return [New] of it from a function New of your package, and from the function that you
//     [Register]; [ParseURL] helps.
//  3. Choose [Layout.BlocksPerPage]: few processes should write the same page, a page must not
//     exceed the server's largest object (a block takes up to 450 bytes), and all pages are read
//     when blocks run out. If the server has several implementations, or may be behind a proxy, set
//     [Layout.Probe].
//  4. Run leasetest.Run against a server, and then leasetest.Processes while you stop it.
//  5. Document what makes the server forget acknowledged writes: a failover, a restored backup, a
//     cache, a disk that is not synced.
//
// A store that registers its scheme can also be used from the command line: package
// cmd/traceflake/cli is the command, for a main function that imports the store.
package driver
