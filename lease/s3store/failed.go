package s3store

import (
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// The rights that the store needs. They are also the names of its operations.
const (
	getObject  = "s3:GetObject"
	putObject  = "s3:PutObject"
	listBucket = "s3:ListBucket"
)

// failed adds the operation to an error that is not nil.
func (s *objects) failed(err *error, right, key string) {
	if *err != nil {
		*err = fmt.Errorf("%s on s3://%s/%s: %w", right, s.bucket, key, *err)
	}
}

const wrongKeys = "the credentials are not those of the server, or a proxy between here and the " +
	"server changes requests"

const wrongClock = "RequestTimeTooSkewed"

// fixes maps the code of a response to what an operator can do.
var fixes = map[string]string{
	wrongClock:                  "set this machine's clock",
	"ExpiredToken":              "renew the credentials, which are expired",
	"InvalidToken":              wrongKeys,
	"InvalidAccessKeyId":        wrongKeys,
	"SignatureDoesNotMatch":     wrongKeys,
	"XAmzContentSHA256Mismatch": wrongKeys,
	"NoSuchBucket":              "create the bucket",
}

// refused returns the error for an unexpected response. If an operator can fix the cause, the error
// says how; then the server did nothing.
func (s *objects) refused(a answer) error {
	fix := fixes[a.Code]
	switch {
	case a.status == http.StatusNotImplemented:
		fix = "use a server that supports conditional writes: one that honours If-Match " +
			"and If-None-Match in PutObject"
	case a.status >= http.StatusInternalServerError:
		fix = "" // whatever else it says, the server may have done something
	case fix != "":
		if c, ok := s.credentials.(*aws.CredentialsCache); ok {
			c.Invalidate() // the next call may find fresh credentials
		}
	case a.Region != "" && a.Region != s.region:
		fix = fmt.Sprintf("set the region: the bucket is in %s, not %s", a.Region, s.region)
	case a.status == http.StatusUnauthorized, a.status == http.StatusForbidden:
		fix = fmt.Sprintf("grant %s and %s on s3://%s/%s*, and %s on s3://%[3]s, "+
			"without which the store may not learn that an object is missing",
			getObject, putObject, s.bucket, s.prefix, listBucket)
	case a.Code == "": // no error of S3
		return &lease.Error{Err: fmt.Errorf("the server responds with %s", a),
			Fix: driver.FixOtherServer}
	}
	if fix == "" {
		return fmt.Errorf("the server responds with %s", a)
	}
	var err error = &lease.Error{Err: fmt.Errorf("%w: %s", lease.ErrMisconfigured, a), Fix: fix}
	if a.Code == wrongClock && time.Now().After(a.time) {
		err = fmt.Errorf("%w: %w", lease.ErrClockAhead, err)
	}
	return err
}
