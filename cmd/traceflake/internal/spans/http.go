package spans

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/traceflake/traceflake/lookup"
)

// maxBody is the size of the largest response of Tempo or Jaeger that is read.
const maxBody = 512 << 20

// server is a server with an HTTP API that returns a trace by its ID.
type server struct {
	name   string // of its kind
	client *http.Client
	base   *url.URL
	header http.Header
	routes []route // the next one is tried if there is no such path or trace
}

// route is one form of request.
type route struct {
	path   string                                   // in front of the ID
	decode func(body []byte) (ptrace.Traces, error) // no body: no spans
}

// NewTempo returns the source at the address of a Tempo server, which includes the path before
// /api. The header is sent with each request.
func NewTempo(address string, header http.Header) (Source, error) {
	s := server{name: "Tempo", routes: []route{{"api/v2/traces", tempoV2}, {"api/traces", tempoV1}}}
	return s.at(address, lookup.Tempo, header, "application/protobuf")
}

// NewJaeger returns the source at the address of a Jaeger query service, like NewTempo.
func NewJaeger(address string, header http.Header) (Source, error) {
	s := server{name: "Jaeger", routes: []route{{"api/v3/traces", jaegerV3}}}
	return s.at(address, lookup.Jaeger, header, "application/json")
}

func (s server) at(
	address string, backend lookup.Backend, header http.Header, accept string,
) (Source, error) {
	var err error
	s.base, err = url.Parse(address)
	if err != nil || s.base.Scheme != "http" && s.base.Scheme != "https" || s.base.Host == "" {
		return nil, fmt.Errorf("%s: the address is invalid: want http://host:port", s.name)
	}
	bounded, err := lookup.New(backend, lookup.Options{})
	if err != nil {
		return nil, err
	}
	s.client, s.header = &http.Client{Transport: bounded}, http.Header{}
	maps.Copy(s.header, header)
	s.header.Set("Accept", accept)
	return &s, nil
}

func (s *server) String() string { return s.name + " at " + s.base.Redacted() }

// Trace implements [Source]. The request has a lower bound of time from the ID, and is repeated
// without it if nothing was found.
func (s *server) Trace(
	ctx context.Context, id trace.TraceID, each func(ptrace.Traces) error,
) error {
	answered := false
	for _, r := range s.routes {
		body, err := s.get(ctx, s.base.JoinPath(r.path, id.String()))
		switch {
		case errors.Is(err, errUnknownPath):
			continue
		case err != nil:
			return fmt.Errorf("%s: %w", s, err)
		}
		td, err := r.decode(body)
		switch partial := errors.Is(err, ErrPartial); {
		case err != nil && !partial:
			return fmt.Errorf("%s: its answer is not a trace: %w", s, err)
		case td.SpanCount() == 0:
			answered = true
			continue
		case partial:
			err = fmt.Errorf("%s: %w", s, err)
		}
		return cmp.Or(each(td), err)
	}
	if !answered {
		return fmt.Errorf("%s: %w; give the address of %s, with the path before /api", s,
			errUnknownPath, s.name)
	}
	return nil
}

// Logs implements [Source]: these servers have no logs.
func (*server) Logs(context.Context, trace.TraceID, func(plog.Logs) error) error { return nil }

// get returns the body of a response, or nil if the server does not have the trace.
func (s *server) get(ctx context.Context, u *url.URL) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, s.header)
	req.Host = s.header.Get("Host") // which the client does not take from the header
	resp, err := s.client.Do(req)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) { // its text repeats the address
			err = failed.Err
		}
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > maxBody:
		return nil, fmt.Errorf("the trace is larger than %d MiB", maxBody>>20)
	case isUnknownPath(resp.StatusCode, resp.Header.Get("Content-Type"), body):
		return nil, errUnknownPath
	case resp.StatusCode == http.StatusNotFound:
		return nil, nil
	case resp.StatusCode != http.StatusOK:
		const shown = 200
		text := strings.TrimSpace(string(body[:min(len(body), shown)]))
		return nil, fmt.Errorf("%s: %.200q", resp.Status, text)
	}
	return body, nil
}

var errUnknownPath = errors.New("the server does not know the path of a trace")

// isUnknownPath reports whether a response is not about a trace: it is the text of Go's routers, or
// a page. The UI of Jaeger answers other paths with its page and 200, as Grafana's login does.
func isUnknownPath(status int, contentType string, body []byte) bool {
	page := strings.HasPrefix(contentType, "text/html")
	return status == http.StatusOK && page || status == http.StatusNotFound &&
		(page || bytes.HasPrefix(body, []byte("404 page not found")))
}

// tempoV1 decodes OTLP's TracesData.
func tempoV1(body []byte) (ptrace.Traces, error) {
	var decoder ptrace.ProtoUnmarshaler
	return decoder.UnmarshalTraces(body)
}

// tempoV2 decodes Tempo's TraceByIDResponse. It returns an incomplete trace with ErrPartial.
func tempoV2(body []byte) (td ptrace.Traces, err error) {
	td = ptrace.NewTraces()
	var partial error
	for len(body) > 0 {
		number, kind, tag := protowire.ConsumeTag(body)
		if tag < 0 {
			return ptrace.Traces{}, protowire.ParseError(tag)
		}
		length := protowire.ConsumeFieldValue(number, kind, body[tag:])
		if length < 0 {
			return ptrace.Traces{}, protowire.ParseError(length)
		}
		data, _ := protowire.ConsumeBytes(body[tag:])
		switch {
		case number == 1 && kind == protowire.BytesType: // OTLP's TracesData
			if td, err = tempoV1(data); err != nil {
				return td, err
			}
		case number == 4 && kind == protowire.BytesType: // why the trace is PARTIAL
			partial = fmt.Errorf("%w: %.200q", ErrPartial, data)
		}
		body = body[tag+length:]
	}
	return td, partial
}

// jaegerV3 decodes one or more of {"result": OTLP}.
func jaegerV3(body []byte) (all ptrace.Traces, err error) {
	all = ptrace.NewTraces()
	var decoder ptrace.JSONUnmarshaler
	for stream := json.NewDecoder(bytes.NewReader(body)); ; {
		var answer struct {
			Result json.RawMessage
			Error  any
		}
		switch err := stream.Decode(&answer); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return all, err
		case answer.Error != nil: // also after some spans
			return all, fmt.Errorf("%.200q", fmt.Sprint(answer.Error))
		case answer.Result == nil:
			continue
		}
		td, err := decoder.UnmarshalTraces(answer.Result)
		if err != nil {
			return all, err
		}
		td.ResourceSpans().MoveAndAppendTo(all.ResourceSpans())
	}
}
