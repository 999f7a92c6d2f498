//go:build unix

package s3store_test

import (
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/traceflake/traceflake/integration/lease/processes"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/integration/servers/s3"
	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/stores"
)

// leases begins the URLs of stores.
const leases = "s3://" + s3.Bucket + "/"

// The server is killed.
func TestProcesses(t *testing.T) {
	s := child.ForTest(t, s3.Start)
	s3.Root.Setenv(t)
	processes.Run(t, leases+"processes?endpoint="+s.Endpoint(), processes.Outage(s))
}

var wantError = calls.WantError("s3store: ", s3.Root.SecretKey, s3.User.SecretKey)

// With the rights of deploy/s3/policy.json, and with each of them missing.
func TestRights(t *testing.T) {
	server := child.ForTest(t, s3.Start)
	text, err := os.ReadFile("../../../deploy/s3/policy.json")
	if err != nil {
		t.Fatal(err)
	}
	// There it is a policy of the user, here one of the bucket.
	policy := strings.NewReplacer("BUCKET", s3.Bucket, "PREFIX", "fleet",
		`"Effect": "Allow"`, `"Effect": "Allow", "Principal": {"AWS": ["`+s3.User.AccessKey+
			`"]}`).Replace(string(text))
	allow := func(right, instead string) {
		t.Helper()
		_, err := server.Client().PutBucketPolicy(t.Context(),
			&sdk.PutBucketPolicyInput{Bucket: aws.String(s3.Bucket),
				Policy: aws.String(strings.Replace(policy, `"`+right+`"`, `"`+instead+`"`, 1))})
		if err != nil {
			t.Fatal(err)
		}
	}
	s3.User.Setenv(t)
	try := func() error {
		return calls.Everything(t.Context(), func() (stores.Store, error) {
			return stores.Open(leases + "fleet?endpoint=" + server.Endpoint())
		})
	}
	for right, another := range map[string]string{
		"s3:GetObject": "s3:GetObjectAcl", "s3:PutObject": "s3:PutObjectAcl",
		"s3:ListBucket": "s3:GetBucketAcl",
	} {
		allow(right, another)
		wantError(t, "without "+right, try(), lease.ErrMisconfigured, right+" on s3://"+s3.Bucket,
			"AccessDenied")
	}
	allow("", "")
	if err := try(); err != nil {
		t.Errorf("with all rights: %v", err)
	}
}
