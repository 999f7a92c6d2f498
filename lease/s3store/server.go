package s3store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5" //nolint:gosec // S3's checksum of a transfer
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/traceflake/traceflake/lease/driver"
)

// server is a [driver.Objects] on the objects of a bucket whose keys begin with a prefix.
type server struct {
	client      aws.HTTPClient
	credentials aws.CredentialsProvider
	signer      *v4.Signer
	region      string
	base        *url.URL // of the bucket, without a slash at the end
	bucket      string
	prefix      string
}

// readTries is how often an object is read whose data and ETag are of different writes.
const readTries = 10

// Read implements [driver.Objects]. Some gateways on files look up the ETag before they open the
// file, or after that: the two may be of different writes. Most ETags are checksums of the data,
// by which this is seen, and the object is read again. An ETag that is not, and only looks like
// one, is the same in the next response.
func (s *server) Read(ctx context.Context, name string) (driver.Object, error) {
	before := driver.Object{}
	for range readTries {
		o, whole, err := s.read(ctx, name)
		if err != nil || whole ||
			o.Version == before.Version && bytes.Equal(o.Data, before.Data) {
			return o, err
		}
		before = o
	}
	return driver.Object{}, s.failed(getObject, name, fmt.Errorf(
		"in each of %d responses the ETag was of another write than the data", readTries))
}

// read reads an object once. It is whole if its ETag is of its data, as far as that can be known.
func (s *server) read(ctx context.Context, name string) (o driver.Object, whole bool, err error) {
	a, err := s.ask(ctx, http.MethodGet, s.prefix+name, nil, nil)
	if err != nil {
		return o, false, err
	}
	switch {
	case a.status == http.StatusNotFound && a.code == noSuchKey:
		return driver.Object{Time: a.time}, true, nil
	case a.status != http.StatusOK:
		return o, false, s.refused(getObject, name, a)
	}
	version, err := etag(a.header.Get("ETag"))
	if err != nil {
		return o, false, s.failed(getObject, name, err)
	}
	whole = len(version) != 2*md5.Size || version == md5Sum(a.body) ||
		strings.HasPrefix(a.header.Get("X-Amz-Server-Side-Encryption"), "aws:kms")
	return driver.Object{Data: a.body, Version: version, Time: a.time,
		Place: "s3://" + s.bucket + "/" + s.prefix}, whole, nil
}

// md5Sum is the ETag of an object of one part, unless it is encrypted with a KMS key.
func md5Sum(data []byte) string { return fmt.Sprintf("%x", md5.Sum(data)) }

// Close closes idle connections.
func (s *server) Close() error {
	if c, ok := s.client.(*http.Client); ok {
		c.CloseIdleConnections()
	}
	return nil
}

// Write implements [driver.Objects].
func (s *server) Write(ctx context.Context, name string, data []byte,
	version string) (driver.Object, error) {
	condition, value := "If-None-Match", "*"
	if version != "" {
		condition, value = "If-Match", `"`+version+`"`
	}
	sum := md5.Sum(data) // which buckets with Object Lock require, and every server knows
	header := http.Header{"Content-Type": {"application/json"}, condition: {value},
		"Content-Md5": {base64.StdEncoding.EncodeToString(sum[:])}}
	a, err := s.ask(ctx, http.MethodPut, s.prefix+name, header, data)
	if err != nil {
		return driver.Object{}, err
	}
	switch {
	case a.status == http.StatusPreconditionFailed, a.conflict(),
		a.status == http.StatusNotFound && a.code == noSuchKey && version != "":
		return driver.Object{}, driver.ErrChanged
	case a.status != http.StatusOK:
		return driver.Object{}, s.refused(putObject, name, a)
	}
	written, err := etag(a.header.Get("ETag"))
	if sum := a.header.Get("X-Amz-Checksum-Crc64nvme"); err == nil && sum != "" &&
		sum != checksum(data) {
		err = driver.ErrAltered
	}
	if err != nil {
		return driver.Object{}, s.failed(putObject, name, err)
	}
	return driver.Object{Version: written}, nil
}

var nvme = crc64.MakeTable(0x9a6c9329ac4bc9b5)

// checksum returns the CRC-64/NVME of an object, as a server that computes one for each object
// sends it. The store does not ask for it: some servers refuse such requests.
func checksum(data []byte) string {
	return base64.StdEncoding.EncodeToString(
		binary.BigEndian.AppendUint64(nil, crc64.Checksum(data, nvme)))
}

// List implements [driver.Objects]. It lists names only.
func (s *server) List(ctx context.Context) (map[string]driver.Object, error) {
	all := make(map[string]driver.Object)
	query := url.Values{"list-type": {"2"}, "prefix": {s.prefix}}
	for {
		// as it is signed
		a, err := s.ask(ctx, http.MethodGet, "?"+strings.ReplaceAll(query.Encode(), "+", "%20"),
			nil, nil)
		if err != nil {
			return nil, err
		}
		if a.status != http.StatusOK {
			return nil, s.refused(listBucket, "", a)
		}
		var l struct { // of the response of ListObjectsV2
			XMLName               xml.Name `xml:"ListBucketResult"`
			Contents              []struct{ Key string }
			NextContinuationToken string
		}
		if err := xml.Unmarshal(a.body, &l); err != nil {
			return nil, s.failed(listBucket, "", fmt.Errorf("not a list of objects: %w", err))
		}
		for _, c := range l.Contents {
			all[strings.TrimPrefix(c.Key, s.prefix)] = driver.Object{}
		}
		if l.NextContinuationToken == "" {
			return all, nil
		}
		query.Set("continuation-token", l.NextContinuationToken)
	}
}

// etag returns an entity tag without its quotes.
func etag(text string) (string, error) {
	switch tag := strings.Trim(text, `"`); {
	case tag == "":
		return "", errors.New("the response has no ETag")
	case strings.HasPrefix(tag, "W/"):
		return "", fmt.Errorf(
			"the ETag %s is weak: something between here and the server changes responses", tag)
	default:
		return tag, nil
	}
}

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
// [*driver.Busy] if the server says that it did nothing, because there are too many requests, or
// because another process is about to create the same object, which a read may not show yet. Other
// responses of 503 do not say so.
func (s *server) ask(ctx context.Context, method, path string, header http.Header,
	body []byte) (answer, error) {
	// Without GetBody the transport cannot send a body again that the server has taken.
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
		return answer{}, fmt.Errorf("no credentials (set AWS_ACCESS_KEY_ID and "+
			"AWS_SECRET_ACCESS_KEY, or another source of AWS's SDKs): %w", err)
	}
	if err := s.signer.SignHTTP(ctx, credentials, req, payload, "s3", s.region,
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
		return answer{}, fmt.Errorf("%s %s: the response has no valid Date: something between "+
			"here and the server drops it",
			method, req.URL.Redacted())
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
	return answer{}, &driver.Busy{Err: err}
}

// inParts returns a body that calls [driver.Halfway] in its middle.
func inParts(ctx context.Context, data []byte) io.Reader {
	if len(data) == 0 {
		return http.NoBody
	}
	middle := len(data) / 2
	return io.MultiReader(bytes.NewReader(data[:middle]), halfway{ctx},
		bytes.NewReader(data[middle:]))
}

type halfway struct{ context.Context }

func (h halfway) Read([]byte) (int, error) {
	driver.Halfway(h)
	return 0, io.EOF
}

// String is for errors: the status, and what the server says.
func (a answer) String() string {
	return fmt.Sprintf("%d %s %s (%.300q)", a.status, http.StatusText(a.status), a.code, a.message)
}
