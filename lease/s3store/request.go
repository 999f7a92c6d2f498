package s3store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/traceflake/traceflake/lease/driver"
)

// answer is a response.
type answer struct {
	status int
	header http.Header
	body   []byte
	time   time.Time // of the server, or zero if it sends no Date
	problem
}

// problem is the body of an error response.
type problem struct {
	XMLName               xml.Name `xml:"Error"`
	Code, Message, Region string
}

// missing reports whether the object does not exist, rather than its bucket.
func (a answer) missing() bool { return a.status == http.StatusNotFound && a.Code == "NoSuchKey" }

// conflict reports whether the server refused a write because another one of the same object is in
// progress.
func (a answer) conflict() bool {
	return a.status == http.StatusConflict &&
		(a.Code == "ConditionalRequestConflict" || a.Code == "OperationAborted")
}

// String returns the status and the server's message, for errors.
func (a answer) String() string {
	return fmt.Sprintf("%d %s %s (%.300q)", a.status, http.StatusText(a.status), a.Code, a.Message)
}

// An object is far smaller, and so is a list of 1000.
const maxBody = 4 << 20

// ask sends a request once, for the object with a key, or for the bucket with a query. It returns
// [*driver.TryAgain] if the server says that it did nothing, because there are too many requests.
// Other 503 responses do not guarantee this.
func (s *objects) ask(ctx context.Context, method, path string, header http.Header,
	body []byte) (a answer, err error) {
	// Without GetBody the transport cannot send a body again that the server has already received.
	req, err := http.NewRequestWithContext(ctx, method, s.base.String()+"/"+path,
		inParts(ctx, body))
	if err != nil {
		return a, err
	}
	req.ContentLength = int64(len(body))
	maps.Copy(req.Header, header)
	req.Header.Set("Cache-Control", "no-cache")
	payload := fmt.Sprintf("%x", sha256.Sum256(body))
	req.Header.Set("X-Amz-Content-Sha256", payload)
	credentials, err := s.credentials.Retrieve(ctx)
	if err != nil {
		return a, answers.Explain("-", fmt.Errorf("no credentials: %w", err))
	}
	// A signer keeps the key that it derives, even if the secret is replaced.
	signer := v4.NewSigner(func(o *v4.SignerOptions) {
		o.DisableURIPathEscaping = true // as S3 wants it
	})
	if err := signer.SignHTTP(ctx, credentials, req, payload, "s3", s.region,
		time.Now()); err != nil {
		return a, fmt.Errorf("signing a request: %w", err)
	}
	// A compressed response has another ETag. Not signed, since proxies set it too.
	req.Header.Set("Accept-Encoding", "identity")
	res, err := s.client.Do(req)
	if err != nil {
		return a, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.Request != nil && res.Request.Response != nil { // that of a redirect
		return a, fmt.Errorf("the HTTP client followed a redirect to %s, whose response is not "+
			"the bucket's", res.Request.URL.Redacted())
	}
	a = answer{status: res.StatusCode, header: res.Header}
	if a.body, err = io.ReadAll(io.LimitReader(res.Body, maxBody)); err != nil {
		return a, err
	}
	a.time, _ = http.ParseTime(res.Header.Get("Date"))
	if a.status >= http.StatusMultipleChoices {
		if xml.Unmarshal(a.body, &a.problem) != nil {
			a.problem = problem{}
		}
		a.Region = cmp.Or(a.header.Get("X-Amz-Bucket-Region"), a.Region)
	}
	if a.status == http.StatusTooManyRequests || a.Code == "SlowDown" {
		return a, &driver.TryAgain{Err: fmt.Errorf("the server throttles: %s", a)}
	}
	return a, nil
}

// inParts returns a body that calls the function of a [meeting] in its middle.
func inParts(ctx context.Context, data []byte) io.Reader {
	if len(data) == 0 {
		return http.NoBody
	}
	middle := len(data) / 2
	return io.MultiReader(bytes.NewReader(data[:middle]), partSent{ctx},
		bytes.NewReader(data[middle:]))
}

type partSent struct{ context.Context }

func (h partSent) Read([]byte) (int, error) {
	if meet, ok := h.Value(meeting{}).(func()); ok {
		meet()
	}
	return 0, io.EOF
}
