package calls

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/traceflake/traceflake/lease/driver"
)

// Responses returns a check of what a store makes of a server's response to calls, which are of
// read, create and replace: an error with the [Meaning] and, with its fix, the text. No request is
// sent twice, even if its connection breaks, for which the status is 0. open returns the objects of
// a server, and check is of [WantError].
func Responses(t *testing.T, open func(http.HandlerFunc) driver.Objects,
	check func(tb testing.TB, what string, err, sentinel error, texts ...string)) func(calls string,
	status int, header http.Header, body, meaning, text string) {
	const name, version = "page-0001", "u/7"
	return func(calls string, status int, header http.Header, body, meaning, text string) {
		t.Helper()
		var asked atomic.Int64
		o := open(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			maps.Copy(w.Header(), header)
			_, _ = io.Copy(io.Discard, r.Body)
			if status == 0 {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
		for call := range strings.FieldsSeq(calls) {
			var err error
			switch call {
			case "read":
				_, err = o.Read(t.Context(), name)
			case "create":
				_, err = o.Write(t.Context(), name, []byte("data"), "", "")
			case "replace":
				_, err = o.Write(t.Context(), name, []byte("data"), version, "")
			}
			what := fmt.Sprintf("%d %.300s, %s", status, body, call)
			if got, n := Meaning(err), asked.Swap(0); got != meaning || n != 1 {
				t.Errorf("%s: %q after %d requests: %v; want %q after one", what, got, n, err,
					meaning)
			}
			if meaning != "" {
				check(t, what, err, nil, text)
			}
		}
	}
}
