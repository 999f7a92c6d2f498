//go:build unix

package s3store_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

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
	processes.Run(t, processes.Outage(s), leases+"processes?endpoint="+s.Endpoint())
}

// A mirror that runs while the store is created, in a bucket of one name, has another place.
func TestMirror(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	server, mirror := child.ForTest(t, s3.Start), child.ForTest(t, s3.Start)
	s3.Root.Setenv(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	copied := make(chan struct{}) // of the whole store
	go func() {
		seen := map[string]string{}
		for ctx.Err() == nil {
			all, err := server.Client().ListObjectsV2(ctx,
				&sdk.ListObjectsV2Input{Bucket: aws.String(s3.Bucket)})
			if err != nil {
				continue
			}
			// the place before the description
			for _, o := range slices.Backward(all.Contents) {
				if seen[*o.Key] != *o.ETag {
					time.Sleep(950 * time.Millisecond) // more than a machine takes for a write
					copyObject(ctx, server, mirror, *o.Key)
					seen[*o.Key] = *o.ETag
				}
				if strings.HasSuffix(*o.Key, "/config") {
					close(copied)
					return
				}
			}
		}
	}()
	original := calls.NewPlace(t, calls.Objects(t, leases+"mirror?endpoint="+server.Endpoint()))
	original.Ignores = true
	<-copied
	original.Refuses(t, calls.Objects(t, leases+"mirror?endpoint="+mirror.Endpoint()))
}

// copyObject copies an object to another server.
func copyObject(ctx context.Context, from, to *s3.Server, key string) {
	o, err := from.Client().GetObject(ctx,
		&sdk.GetObjectInput{Bucket: aws.String(s3.Bucket), Key: aws.String(key)})
	if err != nil {
		return
	}
	defer func() { _ = o.Body.Close() }()
	if data, err := io.ReadAll(o.Body); err == nil {
		_, _ = to.Client().PutObject(ctx, &sdk.PutObjectInput{Bucket: aws.String(s3.Bucket),
			Key: aws.String(key), Body: bytes.NewReader(data)})
	}
}

var wantError = calls.WantError("s3store: ", s3.Root.SecretKey, s3.User.SecretKey)

// With the rights of deploy/s3/policy.json, and with each of them missing, except s3:ListBucket,
// without which only Amazon does not say that an object is missing.
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
	for _, right := range []string{"s3:GetObject", "s3:PutObject"} {
		allow(right, right+"Acl")
		wantError(t, "without "+right, try(), lease.ErrMisconfigured, right+" on s3://"+s3.Bucket,
			"AccessDenied")
	}
	allow("", "")
	if err := try(); err != nil {
		t.Errorf("with all rights: %v", err)
	}
}
