// A program that leases nodes from a store by package k8sstore. The API server
// is the part of one that a store needs.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/traceflake/traceflake/lease/driver"
	_ "github.com/traceflake/traceflake/lease/k8sstore"
	"github.com/traceflake/traceflake/setup"
)

func main() {
	dir, err := os.MkdirTemp("", "consumer-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	server := httptest.NewServer(&leases{objects: map[string]object{}})
	defer server.Close()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("000102030405060708090a0b0c0d0e0f\n"), 0o600); err != nil {
		panic(err)
	}
	ctx := context.Background()
	config := setup.Config{Store: "k8s://fleet/orders?server=" + server.URL, SecretFile: secret, Nodes: driver.NodeRange{Nodes: 64}}
	ids, err := config.Open(ctx)
	if err != nil {
		panic(err)
	}
	id, _ := ids.NewIDs(ctx)
	if n := ids.Fallbacks(); n > 0 {
		panic(fmt.Sprint(n, " random IDs"))
	}
	fmt.Println(id, "is of a leased node,", ids.Shutdown(ctx))
}

// leases keeps objects as an API server does.
type leases struct {
	mu      sync.Mutex
	objects map[string]object
}

type object struct {
	Kind       string         `json:"kind"`
	APIVersion string         `json:"apiVersion"`
	Metadata   map[string]any `json:"metadata"`
}

func (l *leases) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var o object
	if r.Method != http.MethodGet {
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
			panic(err)
		}
	}
	if r.URL.Query().Has("labelSelector") {
		items := slices.Collect(maps.Values(l.objects))
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "PartialObjectMetadataList", "items": items})
		return
	}
	name := path.Base(r.URL.Path)
	if r.Method == http.MethodPost {
		name = o.Metadata["name"].(string)
	}
	stored, found := l.objects[name]
	failure := 0
	switch {
	case r.Method == http.MethodGet && found:
		o = stored
	case r.Method == http.MethodGet:
		failure = http.StatusNotFound
	case r.Method == http.MethodPost == found, found && stored.Metadata["resourceVersion"] != o.Metadata["resourceVersion"]:
		failure = http.StatusConflict
	default:
		n := 0
		if found {
			n, _ = strconv.Atoi(stored.Metadata["resourceVersion"].(string))
		}
		o.Metadata["uid"], o.Metadata["resourceVersion"] = "the uid", strconv.Itoa(n+1)
		l.objects[name] = o
	}
	if failure != 0 {
		w.WriteHeader(failure)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "code": failure, "details": map[string]string{"kind": "leases"}})
		return
	}
	_ = json.NewEncoder(w).Encode(o)
}
