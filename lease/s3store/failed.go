package s3store

import (
	"cmp"
	_ "embed" // the answers
	"fmt"
	"net/http"
	"strings"
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

const wrongClock = "RequestTimeTooSkewed"

//go:embed answers.txt
var answersTable string

// answers has what servers and AWS's SDK answer.
var answers = driver.ParseAnswers(answersTable)

// explain adds what an operator can do to an error of AWS's SDK, which finds credentials.
func explain(err error) error {
	row := answers.Find("-", err.Error())
	if row.Fix == "" {
		return driver.Diagnose(err)
	}
	return &lease.Error{Err: driver.Mean(row.Means, err), Fix: row.Fix}
}

// refused returns the error for an unexpected response. If an operator can fix the cause, the error
// says how; then the server did nothing.
func (s *objects) refused(a answer) error {
	row := answers.Find(a.Code, a.Message)
	fix := strings.ReplaceAll(row.Fix, "{theirs}", cmp.Or(a.Region, "its response names it"))
	switch {
	case a.status == http.StatusNotImplemented:
		fix = "use a server that supports conditional writes: one that honours If-Match " +
			"and If-None-Match in PutObject"
	case a.status == http.StatusProxyAuthRequired, a.status >= http.StatusInternalServerError:
		// whatever else it says, the server may have done something
		return driver.Diagnose(fmt.Errorf("the server responds with %s", a))
	case fix != "":
		if c, ok := s.credentials.(*aws.CredentialsCache); ok {
			c.Invalidate() // the next call may find fresh credentials
		}
	case a.Region != "" && a.Region != s.region:
		fix = fmt.Sprintf("set the region: the bucket is in %s, not %s", a.Region, s.region)
	case a.Code == "": // no error of S3
		return &lease.Error{Err: fmt.Errorf("the server responds with %s", a),
			Fix: driver.CommonFix("OTHER_SERVER") + "; or a proxy refuses the request, see " +
				"HTTPS_PROXY and NO_PROXY"}
	case a.status == http.StatusUnauthorized, a.status == http.StatusForbidden:
		fix = fmt.Sprintf("grant %s and %s on s3://%s/%s*, and %s on s3://%[3]s, "+
			"without which the store may not learn that an object is missing",
			getObject, putObject, s.bucket, s.prefix, listBucket)
	}
	if fix == "" {
		return fmt.Errorf("the server responds with %s", a)
	}
	meaning := row.Means
	if row.Fix == "" {
		meaning = lease.ErrMisconfigured
	}
	err := driver.Mean(meaning, fmt.Errorf("the server responds with %s", a))
	if a.Code == wrongClock && time.Now().After(a.time) {
		err = fmt.Errorf("%w: %w", lease.ErrClockAhead, err)
	}
	return &lease.Error{Err: err, Fix: fix}
}
