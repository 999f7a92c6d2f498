package s3store

import (
	"fmt"
	"net/http"
	"time"

	"github.com/traceflake/traceflake/lease"
)

// The rights that the store needs, which are also the names of its operations.
const (
	getObject  = "s3:GetObject"
	putObject  = "s3:PutObject"
	listBucket = "s3:ListBucket"
)

const noSuchKey = "NoSuchKey"

// failed adds to err what was being done.
func (s *server) failed(right, name string, err error) error {
	where := "s3://" + s.bucket
	if right != listBucket {
		where += "/" + s.prefix + name
	}
	return fmt.Errorf("%s on %s: %w", right, where, err)
}

// refused returns the error for an unexpected response and, if an operator can
// fix the cause, says how.
func (s *server) refused(right, name string, a answer) error {
	hint := s.hint(right, a)
	if hint == "" {
		return s.failed(right, name, fmt.Errorf("the server responds with %s", a))
	}
	err := fmt.Errorf("%w: %s: %s", lease.ErrMisconfigured, a, hint)
	if a.code == requestTimeTooSkewed && time.Since(a.time) > 0 {
		err = fmt.Errorf("%w: %w", lease.ErrClockAhead, err)
	}
	return s.failed(right, name, err)
}

const requestTimeTooSkewed = "RequestTimeTooSkewed"

// hint returns what to do about a response, if there is something to do other than wait. In all these
// cases the server did nothing.
func (s *server) hint(right string, a answer) string {
	if a.status >= http.StatusInternalServerError && a.status != http.StatusNotImplemented {
		return "" // whatever else it says, the server may have done something
	}
	switch a.code {
	case requestTimeTooSkewed:
		return fmt.Sprintf("this machine's clock is %s off the server's, set it", time.Since(a.time).Abs().Round(time.Second))
	case "ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired":
		if c, ok := s.credentials.(interface{ Invalidate() }); ok {
			c.Invalidate() // the next call may find fresh ones
		}
		return "the credentials are expired, renew them"
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "XAmzContentSHA256Mismatch":
		return "the credentials are not those of the server, or a proxy between here and the server changes requests"
	case "NoSuchBucket":
		return fmt.Sprintf("there is no bucket %s in %s at %s, create it", s.bucket, s.region, s.base.Host)
	}
	switch {
	case a.region != "" && a.region != s.region:
		return fmt.Sprintf("the bucket is in the region %s, not %s: set the region", a.region, s.region)
	case a.status == http.StatusUnauthorized, a.status == http.StatusForbidden:
		return fmt.Sprintf("the store needs %s and %s on s3://%s/%s*, and %s on s3://%[3]s, without which it may not learn that an object is missing",
			getObject, putObject, s.bucket, s.prefix, listBucket)
	case a.status == http.StatusNotImplemented && right == putObject:
		return "this server does not support conditional writes, use one that honours If-Match and If-None-Match in PutObject"
	}
	return ""
}
