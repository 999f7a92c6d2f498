package s3store

import (
	"cmp"
	_ "embed" // the answers
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// The operations, by the names of the rights that they need.
const (
	getObject = "s3:GetObject"
	putObject = "s3:PutObject"
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

// refused returns the error for an unexpected response. If an operator can fix the cause, the error
// says how; then the server did nothing.
func (s *objects) refused(a answer) error {
	err, code := fmt.Errorf("the server responds with %s", a), a.Code
	switch {
	case a.status == http.StatusProxyAuthRequired,
		a.status >= http.StatusInternalServerError && a.status != http.StatusNotImplemented:
		// whatever else it says, the server may have done something
		return driver.Diagnose(err)
	case code == "": // no error of S3
		return &lease.Error{Err: err, Fix: driver.CommonFix("OTHER_SERVER") +
			"; or a proxy refuses the request, see HTTPS_PROXY and NO_PROXY"}
	case answers.Find(code, a.Message).Fix == "":
		code = strconv.Itoa(a.status)
	default:
		if c, ok := s.credentials.(*aws.CredentialsCache); ok {
			c.Invalidate() // the next call may find fresh credentials
		}
	}
	if code == wrongClock && time.Now().After(a.time) {
		err = fmt.Errorf("%w: %w", lease.ErrClockAhead, err)
	}
	return answers.Explain(code, err, "{theirs}", cmp.Or(a.Region, "its response names it"),
		"{bucket}", s.bucket, "{prefix}", s.prefix)
}
