//go:build unix

package s3store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/traceflake/traceflake/integration/faults"
	"github.com/traceflake/traceflake/integration/lease/processes"
	"github.com/traceflake/traceflake/integration/servers/s3"
	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
	"github.com/traceflake/traceflake/lease/s3store"
	"github.com/traceflake/traceflake/randflake"
)

func TestMain(m *testing.M) {
	leasetest.Worker()
	os.Exit(m.Run())
}

const bucket = s3.Bucket

func config(endpoint string, keys s3.Keys) aws.Config {
	provider := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: keys.AccessKey, SecretAccessKey: keys.SecretKey}, nil
	})
	return aws.Config{Region: s3.Region, BaseEndpoint: aws.String(endpoint), Credentials: provider}
}

var prefixes atomic.Int64

// harness makes each storage a prefix of its own.
func harness(c aws.Config) leasetest.Harness {
	return leasetest.Harness{KnowsTime: true, New: func(testing.TB) leasetest.Storage {
		return storage(c, fmt.Sprintf("storage/%d/", prefixes.Add(1)))
	}}
}

func storage(c aws.Config, prefix string) leasetest.Storage {
	return leasetest.Storage{Open: func() (driver.Store, error) { return s3store.New(c, bucket, prefix) }}
}

func TestConformance(t *testing.T) {
	leasetest.Run(t, harness(config(s3.ForTest(t).Endpoint(), s3.Root)))
}

// Processes reach the server through a bad network. The server is killed.
func TestProcesses(t *testing.T) {
	s := s3.ForTest(t)
	s3.Root.Setenv(t)
	proxy := faults.HTTP(t, http.DefaultTransport, s.Endpoint())
	processes.Run(t, "s3://"+bucket+"/processes?endpoint="+proxy.Endpoint(), processes.Outage(s))
	proxy.Check(t)
}

// counted returns a configuration whose requests are counted.
func counted(tb testing.TB, transport http.RoundTripper) (aws.Config, *calls.Transport) {
	tb.Helper()
	cfg, c := config(s3.ForTest(tb).Endpoint(), s3.Root), &calls.Transport{RoundTripper: transport}
	cfg.HTTPClient = &http.Client{Transport: c}
	return cfg, c
}

// Those of a process and of a fleet are in docs/operating.md.
func TestRequests(t *testing.T) {
	cfg, c := counted(t, http.DefaultTransport)
	calls.Costs(t, storage(cfg, "requests").Open, &c.N, map[string]int64{
		"start": 1, "acquire": 2, "acquire again": 1, "renew": 2, "get": 1, "release": 2,
	})
}

// slow is a network on which a read takes 30 ms and a write 60.
type slow struct{}

func (slow) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(map[string]time.Duration{http.MethodGet: 30 * time.Millisecond, http.MethodPut: 60 * time.Millisecond}[r.Method])
	return http.DefaultTransport.RoundTrip(r)
}

// A process has its first lease within a second.
func TestFirstLeaseOverASlowNetwork(t *testing.T) {
	cfg, _ := counted(t, slow{})
	stored := storage(cfg, "slow")
	stored.Create(t, lease.Description{})
	secret, err := randflake.NewCodec(make([]byte, 16))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	keeper, err := lease.Start(t.Context(), stored.Client(t), secret)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = keeper.Close(t.Context()) }()
	if err := keeper.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("the first lease took %s, want at most 1s", took)
	}
}

var wantError = calls.WantError("s3store: ", s3.Root.SecretKey, s3.User.SecretKey)

// With the rights that the documentation lists, and with each of them missing.
func TestRights(t *testing.T) {
	server := s3.ForTest(t)
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
