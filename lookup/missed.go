package lookup

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"mime"
	"net/http"
)

// emptyLen is more than any server needs to say that it found nothing.
const emptyLen = 512

// missed reports whether the server may have found nothing because of the bound. Where it cannot
// tell, it returns true, which costs a request. It leaves the body of a response that it does not
// count as missed complete.
func missed(resp *http.Response) bool {
	switch {
	case notFound(resp):
		return true
	case resp.StatusCode >= http.StatusMultipleChoices && resp.StatusCode < http.StatusBadRequest:
		return true // the location may contain the added time
	case resp.StatusCode != http.StatusOK:
		return false // an error is not an answer
	}
	if resp.ContentLength > emptyLen {
		return false
	}
	body := resp.Body
	start, err := io.ReadAll(io.LimitReader(body, emptyLen+1))
	if err == nil && len(start) <= emptyLen && hasNoSpans(start, resp.Header) {
		return true
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(start), body), body}
	return false
}

// notFound reports whether the server has no such trace, or refuses the parameters.
func notFound(resp *http.Response) bool {
	return resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusBadRequest
}

// hasNoSpans reports whether a whole body contains no spans or cannot be read.
func hasNoSpans(body []byte, h http.Header) bool {
	switch h.Get("Content-Encoding") {
	case "", "identity":
	case "gzip":
		// Its length bounds what it holds; no bomb fits into it.
		r, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return true
		}
		if body, err = io.ReadAll(r); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return true
		}
	default:
		return true
	}
	media, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	switch media {
	case "application/json", "text/plain", "":
		// Every span has an ID: spanId in OTLP, spanID in Jaeger's older API.
		return !bytes.Contains(bytes.ToLower(body), []byte(`"spanid"`))
	case "application/protobuf":
		// Tempo's v1 message is the trace; v2's has the trace as field 1. Both begin with the tag
		// of field 1 and a length, which is not zero if there is anything.
		const field1 = 1<<3 | 2
		return len(body) < 2 || body[0] != field1 || body[1] == 0
	}
	return true
}
