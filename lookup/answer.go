package lookup

import (
	"bytes"
	"context"
	"io"
	"net/http"
)

// emptyLen exceeds the length of any server's response for a trace that it did not find, in JSON,
// protobuf or compressed: Tempo's has 25 bytes. Hardly any trace is shorter.
const emptyLen = 256

// missed reports whether the server may have found nothing because of the bound. If that is
// unclear, it returns true, which costs a request. If it returns false, the body is still complete.
func missed(resp *http.Response) bool {
	switch {
	case notFound(resp):
		return true
	case resp.StatusCode >= http.StatusMultipleChoices && resp.StatusCode < http.StatusBadRequest:
		return true // the location may contain the added time
	case resp.StatusCode != http.StatusOK: // an error is not an answer
		return false
	}
	rest := resp.Body
	start, _ := io.ReadAll(io.LimitReader(rest, emptyLen+1))
	if len(start) <= emptyLen { // or a broken connection
		return true
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(start), rest), rest}
	return false
}

// notFound reports whether the server does not have the trace, or refuses the parameters.
func notFound(resp *http.Response) bool {
	return resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusBadRequest
}

// body ends the time of a lookup when it is closed.
type body struct {
	io.ReadCloser
	end context.CancelFunc
}

func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
