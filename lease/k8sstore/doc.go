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
//	store, err := k8sstore.New(client, config.Host, "namespace")
//
// # Rights
//
//	rules:
//	  - apiGroups: [coordination.k8s.io]
//	    resources: [leases]
//	    verbs: [get, list, update]
//
// Whoever creates the store, with `traceflake lease create`, also needs create. The store deletes
// and watches nothing. A Role cannot restrict list to names, so give the fleet a namespace of its
// own, or trust all that may write Leases in it.
//
// # The objects
//
// Each Lease object of the store is a page of 128 blocks, as package driver/pages
// describes it, in the annotation traceflake.github.io/page. It has the label
// traceflake.github.io/leases=NAME; its spec is empty.
//
//	traceflake.config      the description of the store
//	traceflake.probe       what the probe below wrote
//	traceflake.page-0000   the blocks of nodes 0 to 1023
//	traceflake.page-0001   …
//
// All of them are created with the store. With blocks of 8 nodes there are 128 pages. A full page
// has 27 kB, all of them 3.5 MB of etcd. This shows who holds what; reading is harmless:
//
//	kubectl get leases -n NAMESPACE -l traceflake.github.io/leases=NAME -o yaml
//
// So never delete one of these objects, or the namespace, or set an End back
// while processes run. An object that is gone is never created again: every call that needs it
// returns [github.com/traceflake/traceflake/lease.ErrReplaced]. Put back what it had, and raise the
// store. Let no tool prune objects by this label.
//
// # Load on the API server
//
// A renewal is one GET and one PUT, an Acquire too if the page on which it begins
// has a free block. A process that starts sends one GET more. With the default
// TTL a lease is renewed every 5 minutes: 1000 processes send 7 requests a
// second, 10000 send 67. An Acquire that finds no free block reads every page.
//
// API Priority and Fairness puts requests of service accounts into the level
// workload-low by default. A throttled request (429) is repeated after what
// Retry-After says, or later, until its call ends. The keeper renews when half of
// the lease is left, so minutes of throttling are harmless.
//
// Create tries out the server's conditional writes, with some 50 requests: of eight at once
// exactly one must be taken. An API server on etcd passes; one whose storage is something else,
// with a fault, is refused. What the server says it stored is compared with what was sent: a
// webhook that changes objects is an error of the call.
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
// it. A copy that lives alongside the original would grant the same nodes: create another store
// instead.
//
// # Clocks
//
// The server's time is the Date header of its responses, in whole seconds. A
// client whose clock is more than a minute ahead of it is refused with
// [github.com/traceflake/traceflake/lease.ErrClockAhead]. No ID depends
// on it.
//
// Tests that kill a real API server, and change its rights, are in integration/lease/k8sstore.
package k8sstore
