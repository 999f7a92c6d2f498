package s3store

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestTornReads: data that is not of its ETag is read again, unless the server's ETags only look
// like checksums.
func TestTornReads(t *testing.T) {
	type answer struct{ etag, data string }
	for _, c := range []struct {
		name    string
		answers []answer
		want    answer
	}{
		{"a checksum", []answer{{md5Sum([]byte("old")), "old"}}, answer{md5Sum([]byte("old")), "old"}},
		{"no checksum", []answer{{"v1", "old"}}, answer{"v1", "old"}},
		{
			"torn, then whole",
			[]answer{{md5Sum([]byte("old")), "new"}, {md5Sum([]byte("new")), "new"}},
			answer{md5Sum([]byte("new")), "new"},
		},
		{
			"torn twice, then whole",
			[]answer{
				{md5Sum([]byte("old")), "new"}, {md5Sum([]byte("new")), "newer"},
				{md5Sum([]byte("newer")), "newer"},
			},
			answer{md5Sum([]byte("newer")), "newer"},
		},
		{
			"a KMS key",
			[]answer{{md5Sum([]byte("key")), "old"}, {md5Sum([]byte("key")), "old"}},
			answer{md5Sum([]byte("key")), "old"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked := 0
			gateway := httptest.NewServer(http.HandlerFunc(
				func(w http.ResponseWriter, _ *http.Request) {
					a := c.answers[min(asked, len(c.answers)-1)]
					asked++
					w.Header().Set("ETag", fmt.Sprintf("%q", a.etag))
					_, _ = w.Write([]byte(a.data)) // the test sees what arrives
				}))
			defer gateway.Close()
			s, err := newServer(played(gateway.URL).config(), bucket, "")
			if err != nil {
				t.Fatal(err)
			}
			o, err := s.Read(t.Context(), "page-0000")
			if got := (answer{o.Version, string(o.Data)}); err != nil || got != c.want {
				t.Errorf("read %v, %v; want %v", got, err, c.want)
			}
			if asked != len(c.answers) {
				t.Errorf("%d requests, want %d", asked, len(c.answers))
			}
		})
	}
}
