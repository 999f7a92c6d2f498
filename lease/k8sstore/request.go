package k8sstore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver/pages"
)

// connection is how to reach the API server at this moment.
type connection struct {
	client *http.Client
	server string // its URL, without a slash at the end
	token  string // "" if the client authenticates
	stale  error  // why the token could not be read again
}

type request struct {
	verb, method        string
	path, query, accept string
	body                []byte
}

// status is an error response of Kubernetes, a Status of its API.
type status struct {
	Kind    string
	Message string
	Code    int
	Details struct{ Kind string }
}

func (s *status) Error() string { return fmt.Sprintf("status %d: %s", s.Code, shorten(s.Message)) }

// errOther is the cause if a response is not one of Kubernetes.
var errOther = errors.New("this is no API server of Kubernetes with " + apiVersion)

const maxResponse = 64 << 20

// do sends a request once and decodes the response into v. It returns the server's time, or zero if the
// server does not say it.
func (o *objects) do(ctx context.Context, r request, v any) (at time.Time, err error) {
	c := o.connect()
	q, err := http.NewRequestWithContext(ctx, r.method, c.server+r.path, nil)
	if err != nil {
		return at, err
	}
	q.URL.RawQuery = r.query
	if r.body != nil {
		q.Body = io.NopCloser(bytes.NewReader(r.body)) // without GetBody no transport sends it again: the server may have carried it out
		q.ContentLength = int64(len(r.body))
		q.Header.Set("Content-Type", "application/json")
	}
	q.Header.Set("Accept", cmp.Or(r.accept, "application/json"))
	q.Header.Set("User-Agent", "traceflake")
	if c.token != "" {
		q.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.client.Do(q)
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
		err = &pages.Busy{Err: errors.New("the server throttles"), After: time.Duration(min(max(seconds, 1), 3600)) * time.Second}
	case code/100 == 2 && json.Unmarshal(data, v) == nil:
	case code/100 != 2 && json.Unmarshal(data, s) == nil && s.Kind == "Status":
		s.Code = code
		err = s
	case code >= 500 || code == http.StatusUnauthorized || code == http.StatusForbidden: // of a proxy, or of a server that starts
		err = &status{Code: code, Message: excerpt(data)}
	default:
		err = fmt.Errorf("%w: %s answers with status %d %s", errOther, q.URL.Host, code, excerpt(data))
	}
	if response.StatusCode == http.StatusUnauthorized && c.stale != nil {
		err = fmt.Errorf("%w; %w", err, c.stale)
	}
	return at, err
}

// excerpt returns the beginning of a response.
func excerpt(data []byte) string { return strconv.Quote(shorten(string(data))) }

func shorten(text string) string {
	const most = 300
	if text = strings.TrimSpace(text); len(text) > most {
		text = text[:most] + "…"
	}
	return text
}

// failed adds to err what was asked of the server and, if an operator can fix the
// cause, how.
func (o *objects) failed(r request, err error) error {
	refuse := func(hint string) error { return fmt.Errorf("%w: %s: %w", lease.ErrMisconfigured, hint, err) }
	what := fmt.Sprintf("%s leases.coordination.k8s.io in namespace %q", r.verb, o.namespace)
	s := (*status)(nil)
	if !errors.As(err, &s) {
		if errors.Is(err, errOther) && r.body == nil { // otherwise it may have written something
			err = refuse("check the server's URL")
		}
		return fmt.Errorf("%s: %w", what, err)
	}
	switch {
	case s.Code == http.StatusUnauthorized:
		err = refuse("it does not accept the credentials")
	case s.Code == http.StatusForbidden && strings.Contains(s.Message, "cannot "+r.verb+" resource"):
		err = refuse(fmt.Sprintf("the client may not %s; its Role needs get, list, create and update", what))
		return err
	case s.Code == http.StatusForbidden:
		err = refuse("it refuses the request")
	case s.Code == http.StatusNotFound && s.Details.Kind == "namespaces":
		err = refuse(fmt.Sprintf("there is no namespace %q: create it", o.namespace))
	}
	return fmt.Errorf("%s: %w", what, err)
}
