// Package driver is for authors of stores: it contains the engine that grants blocks of nodes, and
// the registry of stores by URL. Services need package lease and the package of their store.
//
// A backend implements [Objects]: three methods on small objects, which are replaced only if nobody
// else has written them since they were read. [New] does the rest: the rule of granting, the
// store's identity, raises and retries. [Memory] is a backend within one process.
//
// # Objects of a store
//
// Blocks are kept on pages of a fixed number of blocks. Every page is one object:
//
//	config     {"Format":3,"ID":"…","First":0,"Nodes":131072,"BlockSize":8,…,"Complete":true,…}
//	           {"CRC32C":"…"}
//	page-0000  {"Format":3,"Store":"…","Number":0,"Writes":3,"Recent":[…]}
//	           {"Node":0,"Nodes":8,"Start":"…","End":"…","Nonce":"…","Version":1,"Owner":"…"}
//	           …
//	           {"CRC32C":"…"}
//
// [Store.Create] writes all of them: first config, then every page, and then config again, with
// "Complete":true. Nobody uses the store earlier, and no object is created later: for a page that
// is missing, or that has the ID of another store, calls return [lease.ErrReplaced]. Every change
// is one conditional write of one page. If the page has changed meanwhile, it is read again. A
// write whose outcome is unknown is never repeated: its error is returned, and the caller finds out
// by the nonce.
//
// # Writing a store
//
//  1. Implement [Objects]; [Memory] is an example. leasetest.Run checks it in some seconds.
//  2. Return [New] of it from a function New of your package, and from the [Opener] that you
//     register with [Register]. The error of a bad URL wraps [lease.ErrInvalidRequest] and does
//     not repeat the URL, which may contain a password: see [ParseURL].
//  3. Choose [Layout.BlocksPerPage]: few processes should write the same page, a page must not
//     exceed the server's largest object (a block takes up to 450 bytes), and all pages are read
//     when blocks run out. If the server has several implementations, or may be behind a proxy, set
//     [Layout.Probe].
//  4. Run leasetest.Run against it, with a leasetest.Proxy in front of the server, which delays
//     requests and responses, and then leasetest.Processes. leasetest.Faults checks what clients
//     see while you kill a server, or one of several.
//  5. Document what makes the server forget acknowledged writes: a failover, a restored backup, a
//     cache, a disk that is not synced.
//
// A store that registers its scheme can also be used from the command line: package
// cmd/traceflake/cli is the command, for a main function that imports the store.
package driver
