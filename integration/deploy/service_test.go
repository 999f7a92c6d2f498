package deploy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	"sigs.k8s.io/kustomize/api/resmap"

	"github.com/traceflake/traceflake/integration/lease/processes"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/integration/servers/kubernetes"
	"github.com/traceflake/traceflake/integration/servers/s3"
	"github.com/traceflake/traceflake/internal/settings"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/filestore"
	"github.com/traceflake/traceflake/lease/fleet"
	_ "github.com/traceflake/traceflake/lease/k8sstore"
	_ "github.com/traceflake/traceflake/lease/pgstore"
	_ "github.com/traceflake/traceflake/lease/s3store"
	"github.com/traceflake/traceflake/traceid"
)

// program builds the program of a Dockerfile's image, and returns its path here and in the image.
func program(t *testing.T, dockerfile string) (here, inImage string) {
	t.Helper()
	image := child.Read(t, dockerfile)
	build := regexp.MustCompile(
		`(?m)^RUN CGO_ENABLED=0 go build -trimpath -o (\S+) \./(\S+)$`).FindStringSubmatch(image)
	if build == nil || !strings.Contains(image, "COPY --from=build "+build[1]+" "+build[1]+"\n") {
		t.Fatalf("no steps build the program and take it over:\n%s", image)
	}
	t.Setenv("CGO_ENABLED", "0")
	return child.Build(t, "github.com/traceflake/traceflake/"+build[2]), build[1]
}

// surroundings are an operator's settings for the pods of a store: secrets, and the store's URL.
type surroundings struct {
	secrets map[string]string // by name and key
	env     []string          // what the kubelet and the cloud set
	store   string            // its URL for an operator
}

// The image has the command of the manifests. With their arguments, their environment and the
// additions of docs/kubernetes.md, it listens on their port, answers the probe, holds a lease in a
// real store, generates its IDs with it, and gives it back when it ends.
func TestServiceRuns(t *testing.T) {
	here, inImage := program(t, "examples/otelhttp/Dockerfile")
	for store, surround := range map[string]func(*testing.T, resmap.ResMap) surroundings{
		"kubernetes": onKubernetes, "postgres": onPostgres, "s3": onS3,
	} {
		t.Run(store, func(t *testing.T) {
			objects := render(t, store, "runs")
			_, c := service(t, objects)
			args := slices.Clone(c.Args)
			if len(c.Command) != 1 || c.Command[0] != inImage ||
				args[len(args)-1] != fmt.Sprintf(":%d", c.Ports[0].ContainerPort) {
				t.Errorf("the command is %q %q, the image has %s, the port is %+v", c.Command, args,
					inImage, c.Ports[0])
			}
			args[len(args)-1] = "127.0.0.1:0"
			around := surround(t, objects)
			secret := secretFile(t, t.TempDir(), "dffd6021bb2bd5b0af676290809ec3a5")
			keyring, err := fleet.LoadKeyring(secret)
			if err != nil {
				t.Fatal(err)
			}
			opened := processes.Create(t, around.store, keyring.Codec())
			block := func() lease.Grant {
				t.Helper()
				blocks, err := opened.List(t.Context())
				blocks = slices.DeleteFunc(blocks,
					func(b lease.Grant) bool { return b.Version == 0 })
				if err != nil || len(blocks) != 1 {
					t.Fatalf("got %+v, %v, want one block that was ever granted", blocks, err)
				}
				return blocks[0]
			}
			cmd := exec.CommandContext(t.Context(), here, args...)
			// of two values the last one counts
			cmd.Env = slices.Concat(environment(t, c, around.secrets, secret), around.env)
			cmd.Env = append(cmd.Env, probeVar+"=127.0.0.1:0")
			running := child.Run(t, cmd)
			urls := child.Await(t, running, 2, child.Served)
			child.Get(t, urls[1]+"/ready")
			if _, text := child.Get(t, urls[1]+"/metrics"); !strings.Contains(text,
				"\ntraceflake_lease_blocks{") {
				t.Errorf("metrics:\n%s", text)
			}
			header, _ := child.Get(t, urls[0])
			id, err := trace.TraceIDFromHex(header.Get("x-trace-id"))
			if err != nil {
				t.Fatal(err)
			}
			host, _ := os.Hostname()
			held, info := block(), traceid.Inspect(keyring, id)
			if node := info.Parts.Node; !info.Agree || node < held.Node ||
				node >= held.Node+held.Nodes {
				t.Errorf("the ID is %+v; the process holds %+v", info, held)
			}
			if !strings.HasPrefix(held.Owner, host+"/") ||
				time.Until(held.End) < lease.DefaultTTL/2 {
				t.Errorf("got %+v, want a lease of %s", held, host)
			}
			end(t, running)
			if left := block(); time.Until(left.End) > lease.DefaultTTL/2 {
				t.Errorf("the lease was not given back: %+v", left)
			}
		})
	}
}

// secretFile returns a file such as `traceflake lease create` writes.
func secretFile(t *testing.T, dir, secret string) string {
	t.Helper()
	name := filepath.Join(dir, "secret-"+secret[:4])
	child.Write(t, name, secret+"\n")
	return name
}

// environment is the container's, with the file of secrets in another place.
func environment(t *testing.T, c container, secrets map[string]string, file string) (env []string) {
	t.Helper()
	for _, v := range c.Env {
		if ref := v.ValueFrom.SecretKeyRef; ref.Name != "" {
			v.Value = secrets[ref.Name+"/"+ref.Key]
		}
		if v.Name == settings.SecretFile {
			v.Value = file
		}
		env = append(env, v.Name+"="+v.Value)
	}
	return env
}

// onKubernetes applies the manifests to a real API server. The service has the rights of its
// account there.
func onKubernetes(t *testing.T, objects resmap.ResMap) surroundings {
	s := kubernetes.Shared(t)
	apply(t, s, "runs", text(t, objects))
	_, c := service(t, objects)
	const pods = "k8s:///traceflake"
	if !slices.Contains(c.Env, variable{Name: settings.Store, Value: pods}) {
		t.Fatalf("no store %s in %+v", pods, c.Env)
	}
	// In a pod the kubelet mounts the account's token.
	var token struct{ Status struct{ Token string } }
	post(t, s, "/api/v1/namespaces/runs/serviceaccounts/orders/token",
		`{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}`, &token)
	const store = "k8s://runs/traceflake?server="
	return surroundings{
		env:   []string{settings.Store + "=" + store + s.Proxy(token.Status.Token)},
		store: store + s.Proxy(kubernetes.Token(kubernetes.Admin)),
	}
}

// onPostgres creates the role of role.sql. The service has its rights and the URL of the page.
func onPostgres(t *testing.T, _ resmap.ResMap) surroundings {
	server := child.ForTest(t, servers.Postgres)
	admin := server.Connect(t)
	execute := func(sql string) {
		if _, err := admin.Exec(context.Background(), sql); err != nil {
			t.Error(err)
		}
	}
	role := child.Read(t, "deploy/kubernetes/stores/postgres/role.sql")
	execute(strings.Replace(role, ":'password'", "'word'", 1))
	t.Cleanup(func() {
		execute("DROP OWNED BY traceflake; DROP ROLE traceflake") // the server may be the tester's
	})
	u, err := url.Parse(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("search_path", "traceflake")
	u.User, u.RawQuery = url.UserPassword("traceflake", "word"), query.Encode()
	return onPage(t, "postgres://traceflake:…@host/db?search_path=traceflake", u.String())
}

// onS3 starts Versity's gateway.
func onS3(t *testing.T, _ resmap.ResMap) surroundings {
	server := child.ForTest(t, s3.Start)
	s3.Root.Setenv(t)
	around := onPage(t, "s3://bucket/leases?region=",
		"s3://"+s3.Bucket+"/leases?region="+s3.Region+"&endpoint="+
			url.QueryEscape(server.Endpoint()))
	around.env = []string{"AWS_ACCESS_KEY_ID=" + s3.Root.AccessKey, "AWS_SECRET_ACCESS_KEY=" +
		s3.Root.SecretKey}
	return around
}

// onPage returns the surroundings of a store whose URL has the form that docs/kubernetes.md shows.
func onPage(t *testing.T, form, store string) surroundings {
	t.Helper()
	if !strings.Contains(child.Read(t, "docs/kubernetes.md"), form) {
		t.Errorf("docs/kubernetes.md does not say %q", form)
	}
	return surroundings{secrets: map[string]string{"traceflake/store": store}, store: store}
}

// A service whose collector does not answer gives its lease back and ends before the kubelet kills
// it.
func TestCollectorIsStuck(t *testing.T) {
	sent := make(chan string, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		sent <- r.URL.Path
		<-r.Context().Done() // the service has ended
	}))
	defer collector.Close()
	file := filepath.Join(t.TempDir(), "leases")
	cmd := exec.CommandContext(t.Context(),
		child.Build(t, example), "orders",
		"127.0.0.1:0")
	cmd.Env = []string{"TRACEFLAKE_STORE=file:" + file,
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL, "OTEL_EXPORTER_OTLP_TIMEOUT=60000"}
	orders := child.Run(t, cmd)
	child.Get(t, child.Await(t, orders, 1, child.Served)[0])
	began := time.Now()
	err := orders.Terminate()
	// 4 s for the spans and 2 s for the lease, and 2 s on a busy machine
	if took := time.Since(began); err == nil || took > 8*time.Second {
		t.Errorf("ended after %s with %v, want an error after about 4 s: the spans were not sent",
			took, err)
	}
	if len(sent) == 0 || <-sent != "/v1/traces" {
		t.Error("the collector was not sent the spans")
	}
	store, err := filestore.New(file)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := store.List(t.Context())
	if err != nil || len(blocks) != 1 || time.Until(blocks[0].End) > lease.DefaultTTL/2 {
		t.Errorf("got %+v, %v, want one lease, given back", blocks, err)
	}
}
