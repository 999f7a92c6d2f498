package k8sstore_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/traceflake/traceflake/integration/servers/kubernetes"
)

// flawed is a server that is wrong in one way, which TRACEFLAKE_FLAW names.
type flawed struct {
	http.RoundTripper
	flaw string

	mu  sync.Mutex
	old map[string][]byte // responses to GET
}

// The flaws, and the checks of leasetest each of which must see one.
var flaws = map[string][]string{
	"none": nil,
	// A write does not compare the version.
	"unconditional": {"linearizable", "every_block_at_once"},
	// Every other read returns what the one before it returned.
	"stale": {"linearizable", "renew"},
}

const flawVariable = "TRACEFLAKE_FLAW"

// flawOf returns the transport with the flaw that this process is to show.
func flawOf(transport http.RoundTripper) http.RoundTripper {
	if flaw := os.Getenv(flawVariable); flaw != "" {
		return &flawed{RoundTripper: transport, flaw: flaw, old: map[string][]byte{}}
	}
	return transport
}

func (f *flawed) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case f.flaw == "unconditional" && r.Method == http.MethodPut:
		f.mu.Lock() // so that the version read here is the one that is replaced
		defer f.mu.Unlock()
		return f.overwrite(r)
	case f.flaw == "stale" && r.Method == http.MethodGet:
		return f.stale(r)
	}
	return f.RoundTripper.RoundTrip(r)
}

func (f *flawed) overwrite(r *http.Request) (*http.Response, error) {
	var next, current struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Metadata   map[string]any `json:"metadata"`
	}
	if err := json.NewDecoder(r.Body).Decode(&next); err != nil {
		return nil, err
	}
	get := r.Clone(r.Context())
	get.Method, get.Body, get.ContentLength = http.MethodGet, nil, 0
	res, err := f.RoundTripper.RoundTrip(get)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if err := json.NewDecoder(res.Body).Decode(&current); err != nil {
		return nil, err
	}
	next.Metadata["resourceVersion"] = current.Metadata["resourceVersion"]
	body, err := json.Marshal(next)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return f.RoundTripper.RoundTrip(r)
}

func (f *flawed) stale(r *http.Request) (*http.Response, error) {
	res, err := f.RoundTripper.RoundTrip(r)
	if err != nil || res.StatusCode != http.StatusOK {
		return res, err
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	at := r.URL.Path
	if old := f.old[at]; old != nil {
		body = old
		delete(f.old, at)
	} else {
		f.old[at] = body
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return res, err
}

// The conformance suite notices a server that is wrong.
func TestWrongServersAreCaught(t *testing.T) {
	kubernetes.Shared(t) // it was built
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for flaw, checks := range flaws {
		if checks == nil {
			checks = []string{"(renew|linearizable|every_block_at_once)"}
		}
		for _, check := range checks {
			cmd := exec.Command(self, "-test.run=^TestConformance$/^"+check+"$", "-test.timeout=2m")
			cmd.Env = append(os.Environ(), flawVariable+"="+flaw)
			out, err := cmd.CombinedOutput()
			caught := strings.Contains(string(out), "--- FAIL: TestConformance")
			if caught != (flaw != "none") || (err != nil) != caught {
				t.Errorf("%s: %s notices it: %t, %v\n%s", flaw, check, caught, err, out)
			}
		}
	}
}
