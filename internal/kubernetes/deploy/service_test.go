package deploy

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/kubernetes"
	"github.com/traceflake/traceflake/randflake/lease"
	"github.com/traceflake/traceflake/randflake/lease/driver"
	_ "github.com/traceflake/traceflake/randflake/lease/k8sstore"
	"github.com/traceflake/traceflake/setup"
	"github.com/traceflake/traceflake/traceid"
)

// program builds the image's program as the Dockerfile does, and returns its path here and in
// the image.
func program(t *testing.T) (here, inImage string) {
	t.Helper()
	dockerfile, err := os.ReadFile(filepath.Join(root, "examples/otelhttp/Dockerfile"))
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

// The image has the command of the manifests, which takes their arguments, listens on their
// port, answers the probe and ends by itself when it is told to.
func TestServiceRuns(t *testing.T) {
	here, inImage := program(t)
	for _, store := range stores {
		t.Run(store, func(t *testing.T) {
			_, c := service(t, render(t, store))
			if len(c.Command) != 1 || c.Command[0] != inImage {
				t.Errorf("the command is %q, the image has %s", c.Command, inImage)
			}
			listen, port := address(t, c)
			if port != strconv.Itoa(c.Ports[0].ContainerPort) {
				t.Errorf("it listens on %s, the port is %d", listen, c.Ports[0].ContainerPort)
			}
			cmd := command(t, here, c)
			cmd.Env = []string{setup.StoreVar + "=bolt:" + filepath.Join(t.TempDir(), "leases.db")}
			url := start(t, cmd)
			if got := get(t, url+c.StartupProbe.HTTPGet.Path); got.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("the probe's answer has the headers %v", got.Header)
			}
			end(t, cmd)
		})
	}
}

// With the environment of the manifests and the rights of its service account, the service
// holds a lease in the API server, makes its IDs from it and gives it back at the end.
func TestServiceOnKubernetes(t *testing.T) {
	s := kubernetes.Shared(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const namespace, fleetSecret = "runs", "dffd6021bb2bd5b0af676290809ec3a5"
	namespaceOf(ctx, t, s, namespace)
	objects := renderIn(t, "kubernetes", namespace)
	if err := s.Apply(ctx, text(t, objects)); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(ctx, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: other, namespace: "+namespace+"}}"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(fleetSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, c := service(t, objects)
	here, _ := program(t)
	as := func(account string) *exec.Cmd {
		cmd := command(t, here, c)
		cmd.Env = []string{"KUBECONFIG=" + kubeconfig(ctx, t, s, namespace, account)}
		for _, v := range c.Env {
			if v.Name == setup.SecretFileVar {
				v.Value = file
			}
			cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
		}
		return cmd
	}

	out, err := as("other").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "forbidden") {
		t.Errorf("an account without the Role: %v\n%s", err, out)
	}

	cmd := as("orders")
	url := start(t, cmd)
	get(t, url+c.StartupProbe.HTTPGet.Path)
	id, err := trace.TraceIDFromHex(get(t, url+"/").Header.Get("x-trace-id"))
	if err != nil {
		t.Fatal(err)
	}
	keyring, err := setup.LoadKeyring(file)
	if err != nil {
		t.Fatal(err)
	}
	info := traceid.Inspect(keyring, id)
	admin, err := s.Kubeconfig(kubernetes.Admin)
	if err != nil {
		t.Fatal(err)
	}
	store, err := driver.Open(ctx, "k8s://"+namespace+"/traceflake?kubeconfig="+admin, driver.NodeRange{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	held := theBlock(ctx, t, store)
	if node := info.Parts.Node; !info.Agree || node < held.Node || node >= held.Node+held.Nodes {
		t.Errorf("the ID is %+v; the process holds %+v", info, held)
	}
	if !strings.HasPrefix(held.Owner, host+"/") || time.Until(held.GrantedUntil) < lease.DefaultTTL/2 {
		t.Errorf("got %+v, want a lease of %s", held, host)
	}
	end(t, cmd)
	if left := theBlock(ctx, t, store); time.Until(left.GrantedUntil) > lease.DefaultTTL/2 {
		t.Errorf("the lease was not given back: %+v", left)
	}
}

func theBlock(ctx context.Context, t *testing.T, store lease.Admin) lease.Block {
	t.Helper()
	blocks, err := store.List(ctx)
	if err != nil || len(blocks) != 1 {
		t.Fatalf("got %+v, %v; want one block", blocks, err)
	}
	return blocks[0]
}

// kubeconfig returns the path of a file for a pod's service account. In a pod the kubelet
// mounts such a token.
func kubeconfig(ctx context.Context, t *testing.T, s *kubernetes.Server, namespace, account string) string {
	t.Helper()
	answer, err := s.Do(ctx, "POST", "/api/v1/namespaces/"+namespace+"/serviceaccounts/"+account+"/token",
		"application/json", []byte(`{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}`))
	var token struct{ Status struct{ Token string } }
	if err == nil {
		err = json.Unmarshal(answer, &token)
	}
	if err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(map[string]any{
		"current-context": "pod",
		"clusters": []any{map[string]any{"name": "pod", "cluster": map[string]any{
			"server": s.URL(), "certificate-authority-data": s.CA(),
		}}},
		"users": []any{map[string]any{"name": "pod", "user": map[string]any{"token": token.Status.Token}}},
		"contexts": []any{map[string]any{"name": "pod", "context": map[string]any{
			"cluster": "pod", "user": "pod", "namespace": namespace,
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(name, config, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
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

// end ends the service as the kubelet does.
func end(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the service ended with %v", err)
	}
}

// start starts the service and returns its URL, which it prints.
func start(t *testing.T, cmd *exec.Cmd) (url string) {
	t.Helper()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var log strings.Builder
	found := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if _, url, ok := strings.Cut(lines.Text(), " serves "); ok {
				found <- url
			}
			log.WriteString(lines.Text() + "\n")
		}
		close(found)
	}()
	select {
	case url, ok := <-found:
		if !ok {
			t.Fatalf("it does not serve:\n%s", &log)
		}
		return url
	case <-time.After(time.Minute):
		t.Fatal("it does not serve")
		return ""
	}
}
