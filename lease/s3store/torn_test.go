package s3store

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/lease/driver"
)

// A bucket of one name and prefix at another server has another place: the time of an object.
func TestPlace(t *testing.T) {
	places := map[string]bool{}
	for _, since := range []string{"Sun, 22 Nov 2026 02:03:04 GMT",
		"Sun, 22 Nov 2026 02:03:05 GMT", ""} {
		gateway := httptest.NewServer(http.HandlerFunc(
			func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, placeName) && since == "" {
					(&stub{status: http.StatusNotFound, code: "NoSuchKey"}).ServeHTTP(w, r)
					return
				}
				w.Header().Set("Last-Modified", since)
				w.Header().Set("ETag", `"`+md5Sum(nil)+`"`)
			}))
		defer gateway.Close()
		o, err := played(gateway.URL).server(t, "").Read(t.Context(), "config")
		if err != nil || !strings.Contains(o.Place, since) {
			t.Errorf("%s: the place is %q, %v", since, o.Place, err)
		}
		places[o.Place] = true
	}
	if len(places) != 3 {
		t.Errorf("the places are %v, want three", places)
	}
}

// A probe's write stops when the server has a part of its body: servers that check the condition
// when a write begins, as Versity's 1.6.0 does, then accept several.
func TestPartSent(t *testing.T) {
	arrived := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = r.Body.Read(make([]byte, 1))
		close(arrived)
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("ETag", `"abc"`)
	}))
	defer server.Close()
	stopped := false
	ctx := driver.WithPartSent(t.Context(), func() {
		stopped = true
		<-arrived
	})
	_, err := played(server.URL).server(t, "").Write(ctx, "probe", make([]byte, 64<<10), "")
	if err != nil || !stopped {
		t.Errorf("%v; stopped: %t", err, stopped)
	}
}

// Data that does not match its ETag is read again, unless the ETag cannot be compared with it.
func TestTornReads(t *testing.T) {
	sum, old := md5Sum([]byte("data")), md5Sum([]byte("older data"))
	for _, c := range []struct {
		name, encryption string
		etags            []string
		want             string // "" for an error
		requests         int
	}{
		{"one part", "", []string{sum}, sum, 1},
		{"several parts", "", []string{sum + "-2"}, sum + "-2", 1},
		{"encrypted by the server", "AES256", []string{sum}, sum, 1},
		{"a KMS key", "aws:kms", []string{old}, old, 1},
		{"a KMS key, twice", "aws:kms:dsse", []string{old}, old, 1},
		{"another checksum", "", []string{old, old}, old, 2},
		{"torn", "", []string{old, sum}, sum, 2},
		{"torn twice", "", []string{old, md5Sum(nil), sum}, sum, 3},
		{"always torn", "", nil, "", readTries},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked := 0
			gateway := httptest.NewServer(http.HandlerFunc(
				func(w http.ResponseWriter, _ *http.Request) {
					tag := md5Sum([]byte{byte(asked)})
					if asked < len(c.etags) {
						tag = c.etags[asked]
					}
					asked++
					w.Header().Set("ETag", fmt.Sprintf("%q", tag))
					w.Header().Set("X-Amz-Server-Side-Encryption", c.encryption)
					_, _ = w.Write([]byte("data"))
				}))
			defer gateway.Close()
			o, err := played(gateway.URL).server(t, "").Read(t.Context(), "page-0000")
			if asked != c.requests {
				t.Errorf("%d requests, want %d", asked, c.requests)
			}
			if c.want == "" {
				if err == nil || !strings.Contains(err.Error(), "of another write") {
					t.Errorf("read %q, %v; want an error", o.Data, err)
				}
			} else if err != nil || o.Version != c.want || string(o.Data) != "data" {
				t.Errorf("read %q of %q, %v; want %q", o.Data, o.Version, err, c.want)
			}
		})
	}
}
