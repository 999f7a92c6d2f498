package s3store_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/traceflake/traceflake/integration/servers/s3"
	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
)

var wantError = calls.WantError("s3store: ", s3.Root.SecretKey, s3.User.SecretKey)

// With the rights that the documentation lists, and with each of them missing.
func TestRights(t *testing.T) {
	server := started(t)
	doc, err := os.ReadFile("../../../lease/s3store/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)^//\s*`).ReplaceAllString(string(doc), "")
	policies := regexp.MustCompile(`(?s)\{"Version".*?\n\]\}`).FindAllString(text, -1)
	if len(policies) != 2 {
		t.Fatalf("the documentation has %d policies", len(policies))
	}
	var policy struct {
		Version   string
		Statement []map[string]any
	}
	if err := json.Unmarshal([]byte(strings.NewReplacer("BUCKET", bucket, "PREFIX", "fleet").Replace(policies[0])), &policy); err != nil {
		t.Fatal(err)
	}
	// There it is a policy of the user, here one of the bucket.
	allow := func(without string) {
		t.Helper()
		p := policy
		p.Statement = nil
		for _, s := range policy.Statement {
			actions, several := s["Action"].([]any)
			if !several {
				actions = []any{s["Action"]}
			}
			for _, action := range actions {
				if action != any(without) {
					p.Statement = append(p.Statement, map[string]any{
						"Effect": s["Effect"], "Resource": s["Resource"], "Action": action,
						"Principal": map[string]any{"AWS": []string{s3.User.AccessKey}},
					})
				}
			}
		}
		data, err := json.Marshal(p)
		if err == nil {
			_, err = server.Client().PutBucketPolicy(t.Context(), &sdk.PutBucketPolicyInput{Bucket: aws.String(bucket), Policy: aws.String(string(data))})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	try := func() error {
		return calls.Everything(t.Context(), storage(config(server.Endpoint(), s3.User), "fleet").Open, nil)
	}
	for _, right := range []string{"s3:GetObject", "s3:PutObject", "s3:ListBucket"} {
		allow(right)
		wantError(t, "without "+right, try(), lease.ErrMisconfigured, right+" on s3://"+bucket, "AccessDenied")
	}
	allow("")
	if err := try(); err != nil {
		t.Errorf("with all rights: %v", err)
	}
}
