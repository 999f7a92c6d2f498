package clickhouse_test

import (
	"database/sql"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
)

// through returns the DSN of a proxy that passes each statement on to handle, for which next is the engine.
func (e *engine) through(handle func(w http.ResponseWriter, r *http.Request, statement string, next http.Handler)) string {
	e.t.Helper()
	at, err := url.Parse(e.DSN())
	if err != nil {
		e.t.Fatal(err)
	}
	next := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: at.Scheme, Host: at.Host})
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		statement, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(statement)))
		handle(w, r, string(statement), next)
	}))
	e.t.Cleanup(proxy.Close)
	at.Scheme, at.Host = "http", strings.TrimPrefix(proxy.URL, "http://")
	return at.String()
}

// rewriting returns database/sql, with settings as in a URL, whose statements are rewritten.
func (e *engine) rewriting(settings string, rewrite func(string) string) *sql.DB {
	e.t.Helper()
	return e.openAt(e.through(func(w http.ResponseWriter, r *http.Request, statement string, next http.Handler) {
		statement = rewrite(statement)
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(statement)), int64(len(statement))
		next.ServeHTTP(w, r)
	}) + "?" + settings)
}

// oneServer turns statements for a cluster into ones that a single server without Keeper runs.
func oneServer(query string) string {
	query = strings.ReplaceAll(query, "clusterAllReplicas('c', system.tables)", "system.tables")
	query = strings.Replace(query, "ENGINE = ReplicatedMergeTree", "ENGINE = MergeTree", 1)
	return onCluster.ReplaceAllString(query, "")
}
