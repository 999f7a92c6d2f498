package s3store

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
)

// On a server with wrong conditional writes nothing but objects of probes is written, however often
// a store is created: there is no place.
func TestProbeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		accepts func(n int, unchanged bool) bool // whether the nth write is acknowledged
		want    string
	}{
		"honours conditions": {func(_ int, unchanged bool) bool { return unchanged }, ""},
		"ignores conditions": {func(int, bool) bool { return true }, "acknowledged 8,"},
		"checks before it has the data": {func(_ int, unchanged bool) bool { return unchanged },
			"acknowledged 8,"},
		"ignores conditions of writes that are alone": {func(n int, unchanged bool) bool {
			return unchanged || n%(5*8+1) == 0
		}, "it replaced an object on condition"},
		"takes none": {func(int, bool) bool { return false }, "acknowledged 0,"},
		"accepts two": {func(n int, unchanged bool) bool {
			return unchanged || n%8 == 2
		}, "acknowledged 2,"},
		"forgets": {func(n int, _ bool) bool { return n%8 == 1 }, "acknowledged 1,"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			objects, n := map[string]string{}, 0
			s := played(t, func(w http.ResponseWriter, r *http.Request) {
				unchanged := func() bool {
					data, found := objects[r.URL.Path]
					return r.Header.Get("If-Match") == strconv.Quote(md5Sum([]byte(data))) ||
						!found && r.Header.Get("If-None-Match") == "*"
				}
				mu.Lock()
				early := unchanged()
				mu.Unlock()
				sent, _ := io.ReadAll(r.Body)
				mu.Lock()
				defer mu.Unlock()
				data, found := objects[r.URL.Path]
				if r.Method == http.MethodPut {
					if n++; !c.accepts(n, early && name[0] == 'c' || unchanged()) {
						respond(w, http.StatusPreconditionFailed, "PreconditionFailed")
						return
					}
					if data = string(sent); name != "forgets" {
						objects[r.URL.Path] = data
					}
				} else if !found {
					respond(w, http.StatusNotFound, "NoSuchKey")
					return
				}
				w.Header().Set("ETag", strconv.Quote(md5Sum([]byte(data))))
				w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
				_, _ = io.WriteString(w, data)
			})
			s.quick = false
			for range 2 {
				if err := s.Prepare(t.Context()); c.want != "" {
					wantError(t, "create", err, lease.ErrMisconfigured, c.want)
				} else if err != nil {
					t.Error(err)
				}
			}
			for path := range objects {
				if name := path[strings.LastIndexByte(path, '/')+1:]; c.want != "" &&
					!strings.HasPrefix(name, probeName) {
					t.Errorf("%s was written", path)
				}
			}
		})
	}
}

// A probe ends with its context.
func TestProbeIsCancelled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	err := played(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}).probe(ctx)
	wantError(t, "probe", err, context.DeadlineExceeded)
}
