package deploy

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
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
			args := append([]string(nil), c.Args...)
			args[len(args)-1] = "127.0.0.1:0"
			cmd := exec.CommandContext(t.Context(), here, args...)
			cmd.Env = []string{"TRACEFLAKE_STORE=bolt:" + filepath.Join(t.TempDir(), "leases.db")}
			url := start(t, cmd)
			response, err := http.Get(url + c.StartupProbe.HTTPGet.Path)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != http.StatusOK || response.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("the probe's answer is %s %v", response.Status, response.Header)
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
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
