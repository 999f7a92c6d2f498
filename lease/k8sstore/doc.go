// Package k8sstore keeps leases of nodes in a Kubernetes cluster, for the fleet that runs there:
// a [github.com/traceflake/traceflake/lease.Store] on Lease objects of its API server. It needs
// nothing but the API server and the standard library.
//
// # By URL
//
// Importing the package registers it for URLs, for example in TRACEFLAKE_STORE:
//
//	k8s://namespace/name
//	k8s:///name
//	k8s://namespace/name?server=http://127.0.0.1:8001
//
// The default namespace is the pod's. The names of all objects begin with name; the default is
// [DefaultName]. Fleets with different secrets need different names or namespaces.
//
// In a pod the store uses the pod's service account. Its token is read for each request, the
// cluster's CA certificate once: after a rotation of the CA, restart the pods.
// Elsewhere server is a URL that needs no credentials, such as that of `kubectl proxy`, which
// uses those of your kubeconfig; without a namespace it is then "default". Any other parameter is
// an error. For other settings, pass your own client to [New], for example one of client-go:
//
//	client, err := rest.HTTPClientFor(config)
//	…
//	store, err := k8sstore.New(client, config.Host, "namespace", "")
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
// own, or trust everything that may write Leases in it.
//
// # The objects
//
// Each Lease is a page of 128 blocks, as package driver describes it, in the annotation
// traceflake.github.io/page. It has the label traceflake.github.io/leases=NAME; its spec is empty.
//
//	traceflake.config      the description of the store
//	traceflake.probe       what the probe wrote
//	traceflake.page-0000   the blocks of nodes 0 to 1023
//	traceflake.page-0001   …
//
// All of them are created with the store. With blocks of 8 nodes there are 128 pages of up to 27 kB,
// 3.5 MB of etcd. This shows who holds what:
//
//	kubectl get leases -n NAMESPACE -l traceflake.github.io/leases=NAME -o yaml
//
// Never delete these objects or the namespace, and never set an End back while processes run. Let
// no tool prune objects by the label. An object that is gone is not created again: every call that
// needs it returns [github.com/traceflake/traceflake/lease.ErrReplaced]. Put back what it contained,
// and raise the store.
//
// # Requests
//
// A start is a GET, a renewal a GET and a PUT, and so is an Acquire if the page on which it begins
// has a free block. With the default TTL, 10000 processes send 67 requests a second. An Acquire
// that finds no free block reads every page.
//
// A throttled request (429) is repeated after Retry-After, or later, until its call ends. A lease is
// renewed when half of it is left, so minutes of throttling are harmless. Other requests are sent
// once, over HTTP/1.1.
//
// Create tests the server's conditional writes, with some 50 requests: of eight at once exactly one
// must be taken. What the server stored is compared with what was sent: if a webhook changes
// objects, the call returns an error.
//
// # Durability and restore
//
// The API server acknowledges a write when most members of its etcd have it on
// disk. So a crash or an upgrade of the control plane forgets nothing. Grants are forgotten when
// etcd is restored from a backup, and when a namespace with these objects is
// copied from a backup of objects: call Raise before any process reaches
// it. A copy alongside the original would grant the same nodes: create another store instead.
//
// # Clocks
//
// The server's time is the Date header of its responses. A client whose clock is more than a minute
// ahead of it is refused with [github.com/traceflake/traceflake/lease.ErrClockAhead].
package k8sstore
