package k8sstore

import (
	"bytes"
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

// connector returns how to reach an API server.
type connector interface {
	connect() (connection, error)
	Close() error
}

// connection is how to reach the server at this moment.
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
	Reason  string
	Code    int
	Details struct {
		Kind   string
		Causes []struct{ Reason string }
	}
}

func (s *status) Error() string { return fmt.Sprintf("status %d: %s", s.Code, shorten(s.Message)) }

// errOther is the cause if a response is not one of Kubernetes.
var errOther = errors.New("this is no API server of Kubernetes with " + apiVersion)

const (
	maxResponse = 64 << 20
	maxError    = 64 << 10
)

// do sends a request and decodes the response into v. It returns the server's time.
func (o *objects) do(ctx context.Context, r request, v any) (time.Time, error) {
	c, err := o.connect()
	if err != nil {
		return time.Time{}, err
	}
	response, err := c.send(ctx, r) //nolint:bodyclose // decode closes it
	if cause := ctx.Err(); err != nil && cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	if err != nil {
		return time.Time{}, err
	}
	if err = decode(response, v); response.StatusCode == http.StatusUnauthorized && c.stale != nil {
		err = fmt.Errorf("%w; %w", err, c.stale)
	}
	at, _ := http.ParseTime(response.Header.Get("Date")) // zero if the server does not say it
	return at, err
}

// send sends a request once. Without GetBody no transport sends a body again,
// and the server may have done what was sent.
func (c connection) send(ctx context.Context, r request) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, r.method, c.server+r.path, nil)
	if err != nil {
		return nil, err
	}
	q.URL.RawQuery = r.query
	if r.body != nil {
		q.Body = io.NopCloser(bytes.NewReader(r.body))
		q.ContentLength = int64(len(r.body))
		q.Header.Set("Content-Type", "application/json")
	}
	q.Header.Set("Accept", "application/json")
	if r.accept != "" {
		q.Header.Set("Accept", r.accept)
	}
	q.Header.Set("User-Agent", "traceflake")
	if c.token != "" {
		q.Header.Set("Authorization", "Bearer "+c.token)
	}
	return c.client.Do(q)
}

// discard reads a response to its end, so that its connection can be used again.
func discard(response *http.Response) {
	_, _ = io.CopyN(io.Discard, response.Body, maxError)
	_ = response.Body.Close()
}

// decode decodes a response into v, or returns it as an error.
func decode(response *http.Response, v any) error {
	defer discard(response)
	if response.StatusCode == http.StatusTooManyRequests {
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		return &pages.Busy{Err: errors.New("the server throttles"), After: time.Duration(min(max(seconds, 1), 3600)) * time.Second}
	}
	if response.StatusCode/100 == 2 {
		data, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
		if err != nil {
			return err
		}
		if json.Unmarshal(data, v) != nil {
			return fmt.Errorf("%w: %s answers %s", errOther, response.Request.URL.Host, excerpt(data))
		}
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxError))
	if err != nil {
		return err
	}
	s := &status{}
	if json.Unmarshal(data, s) == nil && s.Kind == "Status" {
		s.Code = response.StatusCode
		return s
	}
	if response.StatusCode >= 500 || response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden {
		return &status{Code: response.StatusCode, Message: excerpt(data)} // of a proxy, or of a server that starts
	}
	return fmt.Errorf("%w: %s answers with status %d %s", errOther, response.Request.URL.Host, response.StatusCode, excerpt(data))
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
