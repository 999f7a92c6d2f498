// Package k8sstore keeps leases of nodes in Lease objects of a Kubernetes cluster, for the fleet
// that runs in it. It needs only the API server and the standard library. Importing it registers
// k8s://, for example in TRACEFLAKE_STORE:
//
//	k8s://namespace/name
//	k8s:///name
//	k8s://namespace/name?server=http://127.0.0.1:8001
//
// The default namespace is the pod's, and the default name traceflake. In a pod the store uses
// the pod's service account, which needs get and update on leases of coordination.k8s.io;
// whoever creates the store also needs create. For other settings pass your own client to [New].
//
// The store's clock is the Date of responses. README.md describes the objects, the
// requests, and what happens after restores and copies.
package k8sstore
