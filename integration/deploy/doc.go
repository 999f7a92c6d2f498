// Package deploy has the tests of deploy/kubernetes: what the manifests say is
// what setup reads and what the example service does, and a real API server
// takes them.
package deploy
