// A program that serves the JavaScript client.
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/traceflake/traceflake/clients/js"
)

func main() {
	w := httptest.NewRecorder()
	http.ServeContent(w, httptest.NewRequest(http.MethodGet, "/", nil), "traceflake.js", time.Time{}, strings.NewReader(js.Source))
	if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/javascript") || !strings.Contains(w.Body.String(), "export class") {
		panic(fmt.Sprint(w.Header(), w.Body))
	}
	fmt.Println("the client has", w.Body.Len(), "bytes")
}
