package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
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

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/integration/servers/kubernetes"
	"github.com/traceflake/traceflake/integration/servers/s3"
	"github.com/traceflake/traceflake/lease"
	_ "github.com/traceflake/traceflake/lease/k8sstore"
	_ "github.com/traceflake/traceflake/lease/pgstore"
	_ "github.com/traceflake/traceflake/lease/s3store"
	"github.com/traceflake/traceflake/setup"
	"github.com/traceflake/traceflake/traceid"
)

// program builds an image's program as its Dockerfile does, and returns its path here and in the
// image.
func program(t *testing.T, name string) (here, inImage string) {
	t.Helper()
	dockerfile, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	run := regexp.MustCompile(`(?m)^RUN CGO_ENABLED=0 go build (.*) -o (\S+) (\S+)$`).FindSubmatch(dockerfile)
	if run == nil {
		t.Fatalf("no step builds the program:\n%s", dockerfile)
	}
	copied := regexp.MustCompile(`(?m)^COPY --from=build ` + string(run[2]) + ` (\S+)$`).FindSubmatch(dockerfile)
	if copied == nil {
		t.Fatalf("no step takes the program over:\n%s", dockerfile)
	}
	here = filepath.Join(t.TempDir(), "program")
	build := exec.CommandContext(t.Context(), "go", "build", string(run[1]), "-o", here, string(run[3]))
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	return here, string(copied[1])
}

// surroundings are what an operator gives to the pods of a store: secrets, and where the store is.
type surroundings struct {
	secrets map[string]string // by name and key
	env     []string          // what the kubelet and the cloud set
	store   string            // its URL for an operator
}

// The image has the command of the manifests. With their arguments, their environment and what
// docs/kubernetes.md adds, it listens on their port, answers the probe, holds a lease in a real
// store, makes its IDs from it, and gives it back when it is told to end.
func TestServiceRuns(t *testing.T) {
	here, inImage := program(t, "examples/otelhttp/Dockerfile")
	type surround func(t *testing.T, objects resmap.ResMap, program string) surroundings
	for store, surround := range map[string]surround{
		"kubernetes": onKubernetes, "postgres": onPostgres, "s3": onS3,
	} {
		t.Run(store, func(t *testing.T) {
			objects := render(t, store, "runs")
			_, c := service(t, objects)
			if len(c.Command) != 1 || c.Command[0] != inImage {
				t.Errorf("the command is %q, the image has %s", c.Command, inImage)
			}
			if listen := c.Args[len(c.Args)-1]; listen != fmt.Sprintf(":%d", c.Ports[0].ContainerPort) {
				t.Errorf("it listens on %s, the port is %d", listen, c.Ports[0].ContainerPort)
			}
			around := surround(t, objects, here)
			secret := secretFile(t)
			keyring, err := setup.LoadKeyring(secret)
			if err != nil {
				t.Fatal(err)
			}
			servers.CreateStore(t, around.store, keyring.Codec())
			cmd := command(t, here, c)
			cmd.Env = slices.Concat(environment(t, c, around.secrets, secret), around.env) // of two values the last one counts
			cmd.Env = append(cmd.Env, probeVar+"=127.0.0.1:0")
			running := start(t, cmd)
			urls := await(t, running, 2, served)
			get(t, urls[1])
			id, err := trace.TraceIDFromHex(get(t, urls[0]+"/").Header.Get("x-trace-id"))
			if err != nil {
				t.Fatal(err)
			}
			host, err := os.Hostname()
			if err != nil {
				t.Fatal(err)
			}
			held := theBlock(t, around.store)
			info := traceid.Inspect(keyring, id)
			if node := info.Parts.Node; !info.Agree || node < held.Node || node >= held.Node+held.Nodes {
				t.Errorf("the ID is %+v; the process holds %+v", info, held)
			}
			if !strings.HasPrefix(held.Owner, host+"/") || time.Until(held.End) < lease.DefaultTTL/2 {
				t.Errorf("got %+v, want a lease of %s", held, host)
			}
			end(t, running)
			if left := theBlock(t, around.store); time.Until(left.End) > lease.DefaultTTL/2 {
				t.Errorf("the lease was not given back: %+v", left)
			}
		})
	}
}

// secretFile returns a file such as `traceflake lease create` writes.
func secretFile(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(name, []byte("dffd6021bb2bd5b0af676290809ec3a5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// environment is the container's, with the file of secrets in another place.
func environment(t *testing.T, c container, secrets map[string]string, file string) (env []string) {
	t.Helper()
	for _, v := range c.Env {
		if ref := v.ValueFrom.SecretKeyRef; ref.Name != "" {
			value, ok := secrets[ref.Name+"/"+ref.Key]
			if !ok {
				t.Fatalf("%s is in the secret %s, which nobody makes", v.Name, ref.Name)
			}
			v.Value = value
		}
		if v.Name == setup.SecretFileVar {
			v.Value = file
		}
		env = append(env, v.Name+"="+v.Value)
	}
	return env
}

// onKubernetes applies the manifests to a real API server. The service has the rights of its
// account there; another account may not even start it.
func onKubernetes(t *testing.T, objects resmap.ResMap, program string) surroundings {
	s := kubernetes.Shared(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const namespace = "runs"
	namespaceOf(ctx, t, s, namespace)
	const other = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: other, namespace: " + namespace + "}}"
	for _, o := range []string{text(t, objects), other} {
		if err := s.Apply(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	_, c := service(t, objects)
	env := environment(t, c, nil, secretFile(t))
	// In a pod the kubelet mounts the account's token.
	as := func(account string) string {
		const pods = setup.StoreVar + "=k8s:///"
		i := slices.IndexFunc(env, func(v string) bool { return strings.HasPrefix(v, pods) })
		if i < 0 {
			t.Fatalf("no %s in %q", pods, env)
		}
		name := strings.TrimPrefix(env[i], pods)
		return setup.StoreVar + "=k8s://" + namespace + "/" + name + "?server=" + s.Proxy(tokenOf(ctx, t, s, namespace, account))
	}
	cmd := command(t, program, c)
	cmd.Env = slices.Concat(env, []string{as("other"), setup.StrictVar + "=1"})
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "forbidden") {
		t.Errorf("an account without the Role: %v\n%s", err, out)
	}
	return surroundings{
		env:   []string{as("orders")},
		store: "k8s://" + namespace + "/traceflake?server=" + s.Proxy(kubernetes.Token(kubernetes.Admin)),
	}
}

// onPostgres makes the role of role.sql. The service has its rights and the URL of the page.
func onPostgres(t *testing.T, _ resmap.ResMap, _ string) surroundings {
	server := servers.PostgresForTest(t)
	sql, err := os.ReadFile(filepath.Join(root, "deploy/kubernetes/stores/postgres/role.sql"))
	if err != nil {
		t.Fatal(err)
	}
	admin := server.Connect(t)
	execute := func(sql string) {
		if _, err := admin.Exec(context.Background(), sql); err != nil {
			t.Error(err)
		}
	}
	execute(strings.Replace(string(sql), ":'password'", "'word'", 1))
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
	onPage(t, "postgres://traceflake:…@host/db?search_path=traceflake")
	return surroundings{secrets: map[string]string{"traceflake/store": u.String()}, store: u.String()}
}

// onS3 makes a bucket on Versity's gateway.
func onS3(t *testing.T, _ resmap.ResMap, _ string) surroundings {
	server := s3.ForTest(t)
	if err := server.Bucket(t.Context(), "fleet"); err != nil {
		t.Fatal(err)
	}
	s3.Root.Setenv(t)
	onPage(t, "s3://bucket/leases?region=")
	store := "s3://fleet/leases?region=" + s3.Region + "&endpoint=" + url.QueryEscape(server.Endpoint())
	return surroundings{
		secrets: map[string]string{"traceflake/store": store},
		env:     []string{"AWS_ACCESS_KEY_ID=" + s3.Root.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s3.Root.SecretKey},
		store:   store,
	}
}

// onPage checks that docs/kubernetes.md has a text.
func onPage(t *testing.T, text string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs/kubernetes.md"))
	if err != nil || !strings.Contains(string(page), text) {
		t.Errorf("docs/kubernetes.md does not say %q: %v", text, err)
	}
}

// theBlock returns the only block of a store that was ever granted.
func theBlock(t *testing.T, address string) lease.Grant {
	t.Helper()
	blocks, err := servers.OpenStore(t, address).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	blocks = slices.DeleteFunc(blocks, func(b lease.Grant) bool { return b.Version == 0 })
	if len(blocks) != 1 {
		t.Fatalf("got %+v, want one block", blocks)
	}
	return blocks[0]
}

// tokenOf returns a token of a service account, as the kubelet mounts it in a pod.
func tokenOf(ctx context.Context, t *testing.T, s *kubernetes.Server, namespace, account string) string {
	t.Helper()
	var token struct{ Status struct{ Token string } }
	post(ctx, t, s, "/api/v1/namespaces/"+namespace+"/serviceaccounts/"+account+"/token",
		map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": map[string]any{}}, &token)
	return token.Status.Token
}

// post sends an object to the API server and decodes the answer.
func post(ctx context.Context, t *testing.T, s *kubernetes.Server, path string, object, into any) {
	t.Helper()
	body, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := s.Do(ctx, "POST", path, "application/json", body)
	if err == nil {
		err = json.Unmarshal(answer, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// command is the container's, on a free port.
func command(t *testing.T, program string, c container) *exec.Cmd {
	args := slices.Clone(c.Args)
	args[len(args)-1] = "127.0.0.1:0"
	return exec.CommandContext(t.Context(), program, args...)
}

// get expects the status 200.
func get(t *testing.T, url string) *http.Response {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if body, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %s, %v", url, response.Status, body, err)
	}
	return response
}

// start starts a program, which is killed when the test ends.
func start(t *testing.T, cmd *exec.Cmd) *child.Server {
	t.Helper()
	p := child.New(cmd.Path, func() *exec.Cmd { return cmd })
	if err := p.Run(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	return p
}

// await waits until a program has written n texts that match, and returns them.
func await(t *testing.T, p *child.Server, n int, pattern string) []string {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if found := regexp.MustCompile(pattern).FindAllString(p.Output(), n); len(found) == n {
			return found
		}
		if time.Now().After(end) {
			t.Fatalf("nothing like %q in\n%s", pattern, p.Output())
		}
	}
}

// served is the pattern of an address where a program serves.
const served = `http://127\.0\.0\.1:\d+`

// end ends a program as the kubelet does.
func end(t *testing.T, p *child.Server) {
	t.Helper()
	if err := p.Terminate(); err != nil {
		t.Errorf("%v\n%s", err, p.Output())
	}
}
