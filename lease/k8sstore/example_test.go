package k8sstore_test

import (
	"net/http"

	"github.com/traceflake/traceflake/lease/k8sstore"
)

// A program that has a client already: here the one of `kubectl proxy`. Pass the store to
// lease.Start.
func ExampleNew() {
	store, err := k8sstore.New(http.DefaultClient, "http://127.0.0.1:8001", "shop", "orders")
	if err != nil {
		panic(err)
	}
	defer store.Close()
}
