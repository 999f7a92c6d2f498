package s3store

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // S3's checksum of a transfer
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/traceflake/traceflake/lease"
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
	quick       bool // for tests that create many stores: Prepare neither probes nor waits
}

// readTries is how often an object is read while its data and ETag belong to different writes.
const readTries = 10

// Read implements [driver.Objects]. Names of buckets are unique at Amazon only, but a copy of the
// object "place" has another time, and one that was created there has other data.
func (s *objects) Read(ctx context.Context, name string) (o driver.Object, err error) {
	defer s.failed(&err, getObject, s.prefix+name)
	o, err = s.whole(ctx, name)
	if err != nil || name != "config" {
		return o, err
	}
	drawn, since, err := s.mark(ctx)
	if since != "" {
		o.Place = fmt.Sprintf("s3://%s/%s %s since %s", s.bucket, s.prefix, drawn, since)
	}
	return o, err
}

// whole returns an object. Some gateways on files look up the ETag before or after they
// open the file, so the two may belong to different writes. Most ETags are checksums of the data,
// so it notices this and reads the object again. An ETag that only looks like a checksum is the
// same in the next response.
func (s *objects) whole(ctx context.Context, name string) (o driver.Object, err error) {
	for range readTries {
		a, err := s.get(ctx, name)
		if err != nil {
			return driver.Object{}, err
		}
		if a.missing() {
			return driver.Object{Time: a.time}, nil
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
			return o, nil
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

// placeName is the name of an object that only Prepare writes.
const placeName = "place"

// mark returns the data of the object "place" and its time, which are empty if there is none.
func (s *objects) mark(ctx context.Context) (drawn, since string, err error) {
	a, err := s.get(ctx, placeName)
	if err != nil || a.missing() {
		return "", "", err
	}
	return fmt.Sprintf("%.32s", a.body), a.header.Get("Last-Modified"), nil
}

// Prepare implements [driver.Objects]. Only a server that passes a probe gets a place.
func (s *objects) Prepare(ctx context.Context) error {
	_, since, err := s.mark(ctx)
	if err != nil || since != "" {
		return err
	}
	if !s.quick {
		if err := s.probe(ctx); err != nil {
			return fmt.Errorf("trying out the server: %w", err)
		}
	}
	return s.draw(ctx)
}

// draw draws a place. Times are whole seconds, and a mirror may copy an object within milliseconds.
// So it writes the object, with other data each time, until it has done so at the end of a second,
// by the clock that sets these times: a copy of the last data has a later one.
func (s *objects) draw(ctx context.Context) (err error) {
	defer s.failed(&err, putObject, s.prefix+placeName)
	const most = 5
	pause := 10 * time.Millisecond
	var version, at string
	var before time.Time // when the last write began
	atEnd := false       // whether this write is to be at the end of the second
	for misses := 0; misses < most; {
		began := time.Now()
		o, err := s.Write(ctx, placeName, []byte(lease.NewNonce()), version, "")
		_, busy := errors.AsType[*driver.TryAgain](err)
		second := at
		if err == nil {
			version = o.Version
			_, at, err = s.mark(ctx)
		}
		switch {
		case errors.Is(err, driver.ErrChanged): // another client does the same
			return sleep(ctx, 2*time.Second)
		case busy: // some servers accept a write of an object each second
			misses++
			pause = time.Second
		case err != nil:
			return err
		case s.quick, atEnd && at == second:
			return nil
		case atEnd:
			misses++
		}
		atEnd = !atEnd && second != "" && at != second // it has just begun
		wait := pause
		if atEnd {
			wait = time.Until(before.Add(time.Second - time.Since(began)))
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
		before = began
	}
	return nil // a mirror of so slow a server takes longer, too
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
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

// Write implements [driver.Objects]. The server cannot compare the place.
func (s *objects) Write(ctx context.Context, name string, data []byte,
	version, _ string) (o driver.Object, err error) {
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

// etag returns the entity tag of a response, without its quotes.
func etag(a answer) (string, error) {
	tag := strings.Trim(a.header.Get("ETag"), `"`)
	if tag == "" || strings.HasPrefix(tag, "W/") {
		return "", fmt.Errorf("the response has no strong ETag, but %q: does something between "+
			"here and the server change responses?", tag)
	}
	return tag, nil
}
