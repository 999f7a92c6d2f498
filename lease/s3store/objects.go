package s3store

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // S3's checksum of a transfer
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/traceflake/traceflake/lease/driver"
)

// objects is a [driver.Objects] on the objects of a bucket whose keys begin with a prefix.
type objects struct {
	client      aws.HTTPClient
	credentials aws.CredentialsProvider
	region      string
	base        *url.URL // of the bucket, without a slash at the end
	bucket      string
	prefix      string
}

// readTries is how often an object is read while its data and ETag belong to different writes.
const readTries = 10

// Read implements [driver.Objects]. Some gateways on files look up the ETag before or after they
// open the file, so the two may belong to different writes. Most ETags are checksums of the data,
// so Read notices this and reads the object again. An ETag that only looks like a checksum is the
// same in the next response.
func (s *objects) Read(ctx context.Context, name string) (o driver.Object, err error) {
	defer s.failed(&err, getObject, s.prefix+name)
	for range readTries {
		a, err := s.get(ctx, name)
		if err != nil || a.missing() {
			return driver.Object{Time: a.time}, err
		}
		version, err := etag(a)
		if err != nil {
			return driver.Object{}, err
		}
		before := o
		o = driver.Object{Data: a.body, Version: version, Time: a.time}
		if len(version) != 2*md5.Size || version == md5Sum(a.body) ||
			strings.HasPrefix(a.header.Get("X-Amz-Server-Side-Encryption"), "aws:kms") ||
			version == before.Version && bytes.Equal(o.Data, before.Data) {
			if name == "config" {
				o.Place, err = s.place(ctx)
			}
			return o, err
		}
	}
	return driver.Object{}, fmt.Errorf(
		"in each of %d responses the ETag was of another write than the data", readTries)
}

// get returns the response with an object, or one that says that it is missing.
func (s *objects) get(ctx context.Context, name string) (answer, error) {
	a, err := s.ask(ctx, http.MethodGet, s.prefix+name, nil, nil)
	if err == nil && a.status != http.StatusOK && !a.missing() {
		err = s.refused(a)
	}
	return a, err
}

// placeName is the name of an object that only the creation of a store writes, once.
const placeName = "place"

// place returns a text that differs from that of copies: names of buckets are unique at Amazon
// only, but a copy of the object has another time.
func (s *objects) place(ctx context.Context) (string, error) {
	a, err := s.get(ctx, placeName)
	since := a.header.Get("Last-Modified")
	if a.missing() {
		since = "an unknown time: the object " + placeName + " is gone"
	}
	return "s3://" + s.bucket + "/" + s.prefix + " since " + since, err
}

// md5Sum returns the ETag of an object of one part, unless it is encrypted with a KMS key.
func md5Sum(data []byte) string { return fmt.Sprintf("%x", md5.Sum(data)) }

// Close closes idle connections.
func (s *objects) Close() error {
	if c, ok := s.client.(*http.Client); ok {
		c.CloseIdleConnections()
	}
	return nil
}

// Write implements [driver.Objects].
func (s *objects) Write(ctx context.Context, name string, data []byte,
	version string) (o driver.Object, err error) {
	if name == "config" && version == "" {
		_, err := s.Write(ctx, placeName, []byte("Neither write nor delete this object.\n"), "")
		if err != nil && !errors.Is(err, driver.ErrChanged) { // by an earlier creation
			return o, err
		}
	}
	defer s.failed(&err, putObject, s.prefix+name)
	condition, value := "If-None-Match", "*"
	if version != "" {
		condition, value = "If-Match", `"`+version+`"`
	}
	sum := md5.Sum(data) // which buckets with Object Lock require, and every server knows
	header := http.Header{"Content-Type": {"application/json"}, condition: {value},
		"Content-Md5": {base64.StdEncoding.EncodeToString(sum[:])}}
	a, err := s.ask(ctx, http.MethodPut, s.prefix+name, header, data)
	switch {
	case err != nil:
	case a.conflict() && version == "": // a read may not show the object yet
		err = &driver.TryAgain{Err: fmt.Errorf("the object is being created: %s", a)}
	case a.status == http.StatusPreconditionFailed, a.conflict(), a.missing():
		err = driver.ErrChanged
	case a.status != http.StatusOK:
		err = s.refused(a)
	default:
		o.Version, err = etag(a)
	}
	return o, err
}

// List implements [driver.Objects]. It lists names only.
func (s *objects) List(ctx context.Context) (_ map[string]driver.Object, err error) {
	defer s.failed(&err, listBucket, "")
	all := make(map[string]driver.Object)
	query := url.Values{"list-type": {"2"}, "prefix": {s.prefix}}
	for {
		a, err := s.ask(ctx, http.MethodGet, "?"+query.Encode(), nil, nil)
		if err == nil && a.status != http.StatusOK {
			err = s.refused(a)
		}
		if err != nil {
			return nil, err
		}
		var l struct { // of the response of ListObjectsV2
			XMLName               xml.Name `xml:"ListBucketResult"`
			Contents              []struct{ Key string }
			NextContinuationToken string
		}
		if err := xml.Unmarshal(a.body, &l); err != nil {
			return nil, fmt.Errorf("not a list of objects: %w", err)
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

// etag returns the entity tag of a response, without its quotes.
func etag(a answer) (string, error) {
	tag := strings.Trim(a.header.Get("ETag"), `"`)
	if tag == "" || strings.HasPrefix(tag, "W/") {
		return "", fmt.Errorf("the response has no strong ETag, but %q: does something between "+
			"here and the server change responses?", tag)
	}
	return tag, nil
}
