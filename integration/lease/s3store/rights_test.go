package s3store_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/lease/calls"
	"github.com/traceflake/traceflake/integration/servers/s3"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/s3store"
)

var wantError = calls.WantError("s3store", s3.Root.SecretKey, s3.User.SecretKey)

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
	// It is the user's own there, and one of the bucket here.
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
		if err != nil {
			t.Fatal(err)
		}
		server.MustDo(t, http.MethodPut, "/"+bucket+"?policy", data)
	}
	ctx, now := t.Context(), time.Now()
	try := func() error {
		const blocks = 4
		s, err := s3store.New(config(server.Endpoint(), s3.User), bucket, s3store.WithPrefix("fleet"))
		if err != nil {
			t.Fatal(err)
		}
		d, err := driver.NewDescription(lease.Description{Nodes: 8 * blocks})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Create(ctx, d); err != nil {
			return err
		}
		if _, err := s.Raise(ctx, now.Add(-time.Hour)); err != nil {
			return err
		}
		var g lease.Grant
		for range blocks {
			if g, err = s.Acquire(ctx, calls.Request(now)); err != nil {
				return err
			}
		}
		_, err = s.Acquire(ctx, calls.Request(now))
		wantError(t, "no free block", err, lease.ErrNoFreeNode)
		if g, err = s.Renew(ctx, g, calls.Renewal(lease.NewNonce(), g.End)); err != nil {
			return err
		}
		if err := s.Release(ctx, g, lease.NewNonce(), now); err != nil {
			return err
		}
		if list, err := s.List(ctx); err != nil || len(list) != blocks {
			return fmt.Errorf("%d blocks, %w", len(list), err)
		}
		now = now.Add(2 * time.Minute) // all are free again
		return nil
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
