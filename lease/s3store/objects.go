package s3store

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // S3's checksum of a transfer
	"encoding/base64"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"hash/crc64"
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
func (s *objects) Read(ctx context.Context, name string) (driver.Object, error) {
	before := driver.Object{}
	for range readTries {
		o, whole, err := s.read(ctx, name)
		if err == nil && name == "config" && o.Version != "" {
			o.Place, err = s.place(ctx)
		}
		if err != nil || whole ||
			o.Version == before.Version && bytes.Equal(o.Data, before.Data) {
			return o, err
		}
		before = o
	}
	return driver.Object{}, s.failed(getObject, name, fmt.Errorf(
		"in each of %d responses the ETag was of another write than the data", readTries))
}

// read reads an object once. whole reports whether its ETag matches its data, as far as that can be
// known.
func (s *objects) read(ctx context.Context, name string) (o driver.Object, whole bool, err error) {
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
	return driver.Object{Data: a.body, Version: version, Time: a.time}, whole, nil
}

// placeName is the name of an object that only the creation of a store writes, once.
const placeName = "place"

// place returns a text that differs from that of copies: names of buckets are unique at Amazon
// only, but a copy of the object has another time.
func (s *objects) place(ctx context.Context) (string, error) {
	a, err := s.ask(ctx, http.MethodGet, s.prefix+placeName, nil, nil)
	if err != nil {
		return "", err
	}
	since := a.header.Get("Last-Modified")
	switch {
	case a.status == http.StatusNotFound && a.code == noSuchKey:
		since = "an unknown time: the object " + placeName + " is gone"
	case a.status != http.StatusOK:
		return "", s.refused(getObject, placeName, a)
	}
	return "s3://" + s.bucket + "/" + s.prefix + " since " + since, nil
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
	version string) (driver.Object, error) {
	if name == "config" && version == "" {
		_, err := s.Write(ctx, placeName, []byte("Neither write nor delete this object.\n"), "")
		if err != nil && !errors.Is(err, driver.ErrChanged) { // by an earlier creation
			return driver.Object{}, err
		}
	}
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
	if err != nil {
		return driver.Object{}, s.failed(putObject, name, err)
	}
	o := driver.Object{Version: written}
	if sum := a.header.Get("X-Amz-Checksum-Crc64nvme"); sum != "" && sum != checksum(data) {
		o.Data = []byte{} // not what was sent
	}
	return o, nil
}

var nvme = crc64.MakeTable(0x9a6c9329ac4bc9b5)

// checksum returns the CRC-64/NVME of an object, in the form that servers send. The store does not
// request it, because some servers refuse such requests.
func checksum(data []byte) string {
	return base64.StdEncoding.EncodeToString(
		binary.BigEndian.AppendUint64(nil, crc64.Checksum(data, nvme)))
}

// List implements [driver.Objects]. It lists names only.
func (s *objects) List(ctx context.Context) (map[string]driver.Object, error) {
	all := make(map[string]driver.Object)
	query := url.Values{"list-type": {"2"}, "prefix": {s.prefix}}
	for {
		// as the signature requires
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
			if name := strings.TrimPrefix(c.Key, s.prefix); name != placeName {
				all[name] = driver.Object{}
			}
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
