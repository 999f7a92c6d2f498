// Package k8sstore keeps leases of nodes in a Kubernetes cluster, for the fleet
// that runs there: a [github.com/traceflake/traceflake/lease.Store] on
// Lease objects of its API server. It needs nothing but the API server and the
// standard library.
//
// # By URL
//
// Importing the package registers it for URLs, for example in TRACEFLAKE_STORE:
//
//	k8s://namespace/name
//	k8s:///name
//	k8s://namespace/name?server=http://127.0.0.1:8001
//
// Without a namespace it is that of the pod. The names of all objects begin with
// name; the default is [DefaultName]. Fleets with different secrets need different
// names or namespaces.
//
// In a pod the store uses the pod's service account, whose token is read for each
// request. Elsewhere server is a URL that needs no credentials, such as that of
// `kubectl proxy`, which uses those of your kubeconfig; without a namespace it is
// then "default". Any other parameter is an error. For other settings, pass your
// own client to [New], for example one of client-go:
//
//	client, err := rest.HTTPClientFor(config)
//	…
//	store, err := k8sstore.New(client, config.Host, "namespace", driver.NodeRange{})
//
// # Rights
//
//	rules:
//	  - apiGroups: [coordination.k8s.io]
//	    resources: [leases]
//	    verbs: [get, list, create, update]
//
// The store deletes and watches nothing. A Role cannot restrict create and list
// to names, so give the fleet a namespace of its own, or trust all that may write
// Leases in it.
//
// # The objects
//
// Each Lease object of the store is a page of 16 blocks, as package driver/pages
// describes it, in the annotation traceflake.github.io/page. It has the label
// traceflake.github.io/leases=NAME; its spec is empty.
//
//	traceflake.config      the format, the block size and the blocks of a page
//	traceflake.probe-00    what the probe below wrote
//	traceflake.page-0000   the blocks of nodes 0 to 127
//	traceflake.page-0001   …
//
// Objects are created when they are needed. With blocks of 8 nodes there are
// 1024 pages for all nodes. A full page has 4 kB, all of them 4 MB of etcd. This
// shows who holds what; reading is harmless:
//
//	kubectl get leases -n NAMESPACE -l traceflake.github.io/leases=NAME -o yaml
//
// So never delete one of these objects, or the namespace, or set an until back
// while processes run: grants would be forgotten and IDs made twice. If it
// happened, call Raise before any process is started, as after a restore.
// Let no tool prune objects by this label.
//
// # Load on the API server
//
// A renewal is one GET and one PUT, an Acquire too if the page on which it begins
// has a free block. A process that starts sends one GET more. With the default
// TTL a lease is renewed every 5 minutes: 1000 processes send 7 requests a
// second, 10000 send 67. Lists are used only by the first process of all, and
// when no block is free: such an Acquire reads every page and lists them once.
//
// API Priority and Fairness puts requests of service accounts into the level
// workload-low by default. A throttled request (429) is repeated after what
// Retry-After says, or later, until its call ends. The keeper renews when half of
// the lease is left, so minutes of throttling are harmless.
//
// Before a store is created, its first process tries out the server's conditional
// writes, with some 50 requests: of eight at once exactly one must be taken. An
// API server on etcd passes; one whose storage is something else, with a fault,
// is refused.
//
// Requests use HTTP/1.1. A write is never sent twice, except after a response
// which says that nothing was written.
//
// # Durability and restore
//
// The API server acknowledges a write when most members of its etcd have it on
// disk. So a crash or an upgrade of the control plane forgets nothing; while
// there is none, processes use their grants to the end. Grants are forgotten when
// etcd is restored from a backup, and when a namespace with these objects is
// copied from a backup of objects: call Raise before any process reaches
// it. A copy that lives beside the original is another store: two fleets with one
// secret need different node ranges.
//
// # Clocks
//
// The server's time is the Date header of its responses, in whole seconds. A
// client whose clock is more than a minute ahead of it is refused with
// [github.com/traceflake/traceflake/lease.ErrClockAhead]. No ID depends
// on it.
//
// The repository tests this package against a real Kubernetes API server in integration/lease/k8sstore.
package k8sstore
