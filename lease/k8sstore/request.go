package k8sstore

import (
	"bytes"
	"context"
	_ "embed" // the answers
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/traceflake/traceflake/lease/driver"
)

// request is for the collection of Leases, or below it for one of them. It has a body if it is a
// write.
type request struct {
	verb, method, path, query string
	body                      []byte
}

// status is Kubernetes' error response, a Status of its API.
type status struct {
	Kind    string
	Message string
	Code    int
	Details struct{ Kind string }
}

func (s *status) Error() string { return fmt.Sprintf("status %d: %.300s", s.Code, s.Message) }

// missing reports whether err is that an object of a kind is missing.
func missing(err error, kind string) bool {
	s, ok := errors.AsType[*status](err)
	return ok && s.Code == http.StatusNotFound && s.Details.Kind == kind
}

// errOther is returned if a response is not from a Kubernetes API server.
var errOther = errors.New("not a response of a Kubernetes API server with " + apiVersion)

// maxResponse is more than the largest object of an API server.
const maxResponse = 4 << 20

// do sends a request once and decodes the response into v. It returns the server's time, or the
// zero Time if the response lacks it.
func (o *objects) do(ctx context.Context, r request, v any) (at time.Time, err error) {
	q, err := http.NewRequestWithContext(ctx, r.method, o.server+"/apis/"+apiVersion+
		"/namespaces/"+o.namespace+"/leases"+r.path, nil)
	if err != nil {
		return at, err
	}
	q.URL.RawQuery = r.query
	if r.body != nil {
		// without GetBody no transport sends it again: the server may have carried it out
		q.Body = io.NopCloser(bytes.NewReader(r.body))
		q.ContentLength = int64(len(r.body))
		q.Header.Set("Content-Type", "application/json")
	}
	q.Header.Set("Accept", "application/json")
	q.Header.Set("User-Agent", "traceflake")
	if o.account != "" {
		token, err := read(o.account, "token")
		if err != nil {
			return at, err
		}
		q.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := o.client.Do(q)
	if err != nil {
		return at, err
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return at, err
	}
	at, _ = http.ParseTime(response.Header.Get("Date"))
	s := &status{}
	switch code := response.StatusCode; {
	case code == http.StatusTooManyRequests:
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		return at, &driver.TryAgain{Err: errors.New("the server throttles"),
			After: time.Duration(min(max(seconds, 1), 3600)) * time.Second}
	case code/100 == 2 && json.Unmarshal(data, v) == nil:
		return at, nil
	case code/100 != 2 && json.Unmarshal(data, s) == nil && s.Kind == "Status":
	// of a proxy, or of a server that starts
	case code >= 500 || code == http.StatusUnauthorized || code == http.StatusForbidden:
		s.Message = fmt.Sprintf("%.300q", bytes.TrimSpace(data))
	default:
		return at, fmt.Errorf("%w: %s responds with status %d %.300q", errOther, q.URL.Host, code,
			data)
	}
	s.Code = response.StatusCode
	return at, s
}

//go:embed answers.txt
var answersTable string

// answers has what API servers answer.
var answers = driver.ParseAnswers(answersTable)

// failed adds the request to err and, if an operator can fix the cause, how.
func (o *objects) failed(r request, err error) error {
	code := ""
	s, _ := errors.AsType[*status](err)
	switch {
	case missing(err, "namespaces"):
		code = "namespaces"
	case s != nil && s.Code == http.StatusForbidden && s.Kind == "":
		code = "proxy"
	case s != nil:
		code = strconv.Itoa(s.Code)
	case errors.Is(err, errOther) && r.body == nil: // otherwise it may have written something
		code = "other"
	}
	return fmt.Errorf("%s leases.coordination.k8s.io in namespace %q: %w", r.verb, o.namespace,
		answers.Explain(code, err, "{namespace}", strconv.Quote(o.namespace)))
}
