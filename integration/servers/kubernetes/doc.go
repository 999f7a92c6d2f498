// Package kubernetes runs a real API server of Kubernetes for tests: the
// kube-apiserver of apiserver/go.mod, on an etcd of its own. It has no
// controllers, so nothing else changes an object, and no nodes. `make
// kubernetes` builds it once, into .cache, and runs the tests.
//
// The TestMain of a package that starts one calls [Main]:
//
//	func TestMain(m *testing.M) { kubernetes.Main(m) }
package kubernetes
