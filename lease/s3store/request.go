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

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// answer is a response.
type answer struct {
	status int
	header http.Header
	body   []byte
	time   time.Time // of the server

	code, message, region string // of an error
}

// An object is far smaller, and so is a list of 1000.
const maxBody = 4 << 20

// conflict reports whether the server refused a write because another one of
// the same object is in progress.
func (a answer) conflict() bool {
	return a.status == http.StatusConflict &&
		(a.code == "ConditionalRequestConflict" || a.code == "OperationAborted")
}

// ask sends a request once, for the object with a key, or for the bucket with a query. It returns
// [*driver.TryAgain] if the server says that it did nothing, because there are too many requests,
// or because another process is about to create the same object, which a read may not show yet.
// Other 503 responses do not guarantee this.
func (s *objects) ask(ctx context.Context, method, path string, header http.Header,
	body []byte) (answer, error) {
	// Without GetBody the transport cannot send a body again that the server has already received.
	req, err := http.NewRequestWithContext(ctx, method, s.base.String()+"/"+path,
		inParts(ctx, body))
	if err != nil {
		return answer{}, err
	}
	req.ContentLength = int64(len(body))
	maps.Copy(req.Header, header)
	req.Header.Set("Cache-Control", "no-cache")
	payload := fmt.Sprintf("%x", sha256.Sum256(body))
	req.Header.Set("X-Amz-Content-Sha256", payload)
	credentials, err := s.credentials.Retrieve(ctx)
	if err != nil {
		return answer{}, &lease.Error{Err: fmt.Errorf("no credentials: %w", err),
			Fix: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or another source of AWS's SDKs"}
	}
	// A signer keeps the key that it derives, even if the secret is replaced.
	signer := v4.NewSigner(func(o *v4.SignerOptions) {
		o.DisableURIPathEscaping = true // as S3 wants it
	})
	if err := signer.SignHTTP(ctx, credentials, req, payload, "s3", s.region,
		time.Now()); err != nil {
		return answer{}, fmt.Errorf("signing a request: %w", err)
	}
	// A compressed response has another ETag. Not signed, since proxies set it too.
	req.Header.Set("Accept-Encoding", "identity")
	res, err := s.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.Request != nil && res.Request.Response != nil { // that of a redirect
		return answer{},
			fmt.Errorf("%s %s: the HTTP client followed a redirect to %s, whose response is not "+
				"the bucket's",
				method, req.URL.Redacted(), res.Request.URL.Redacted())
	}
	a := answer{status: res.StatusCode, header: res.Header}
	if a.body, err = io.ReadAll(io.LimitReader(res.Body, maxBody)); err != nil {
		return answer{}, fmt.Errorf("%s %s: %w", method, req.URL.Redacted(), err)
	}
	if a.time, err = http.ParseTime(res.Header.Get("Date")); err != nil {
		return answer{}, &lease.Error{
			Err: fmt.Errorf("%s %s: the response, %d, has no valid Date", method,
				req.URL.Redacted(), a.status),
			Fix: driver.FixOtherServer + ", or something in between drops headers",
		}
	}
	if a.status >= http.StatusMultipleChoices {
		var e struct {
			XMLName               xml.Name `xml:"Error"`
			Code, Message, Region string
		}
		if xml.Unmarshal(a.body, &e) == nil {
			a.code, a.message = e.Code, e.Message
		}
		a.region = cmp.Or(a.header.Get("X-Amz-Bucket-Region"), e.Region)
	}
	switch {
	case a.conflict() && header.Get("If-None-Match") != "":
		err = fmt.Errorf("s3://%s is creating %s for another process: it responded with %s",
			s.bucket, path, a)
	case a.status == http.StatusTooManyRequests || a.code == "SlowDown":
		err = fmt.Errorf("s3://%s throttles requests: it responded with %s", s.bucket, a)
	default:
		return a, nil
	}
	return answer{}, &driver.TryAgain{Err: err}
}

// inParts returns a body that calls [driver.PartSent] in its middle.
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
	driver.PartSent(h)
	return 0, io.EOF
}

// String returns the status and the server's message, for errors.
func (a answer) String() string {
	return fmt.Sprintf("%d %s %s (%.300q)", a.status, http.StatusText(a.status), a.code, a.message)
}
