package deploy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// proxyManifests is rendered in place of a store's.
const proxyManifests = "../proxy"

// With the arguments of the manifest the command forwards what arrives at the Service's port, and
// answers the probes at another, which the Service does not publish.
func TestLookupProxy(t *testing.T) {
	here, inImage := program(t, "cmd/traceflake/Dockerfile")
	objects := render(t, proxyManifests, "monitoring")
	spec, c := service(t, objects)
	if len(c.Command) != 1 || c.Command[0] != inImage {
		t.Errorf("the command is %q, the image has %s", c.Command, inImage)
	}
	var published struct {
		Spec struct {
			Ports []struct {
				Port       int
				TargetPort string
			}
		}
	}
	object(t, objects, "Service", &published)
	ports := published.Spec.Ports
	for _, p := range []*probe{c.ReadinessProbe, c.LivenessProbe} {
		if len(ports) != 1 || ports[0].TargetPort != c.Ports[0].Name || p.HTTPGet.Port != c.Ports[1].Name {
			t.Errorf("the Service publishes %+v, a probe asks %+v", ports, p)
		}
	}
	if sleep := c.Lifecycle.PreStop.Sleep.Seconds; sleep <= 0 || spec.Spec.TerminationGracePeriodSeconds < sleep+2*5 {
		t.Errorf("the pod has %d s to end, %d of them before the signal", spec.Spec.TerminationGracePeriodSeconds, sleep)
	}

	tempo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "echo") }))
	t.Cleanup(tempo.Close)
	args := slices.Clone(c.Args)
	for _, want := range []string{fmt.Sprintf("--listen=:%d", c.Ports[0].ContainerPort), fmt.Sprintf("--metrics=:%d", c.Ports[1].ContainerPort)} {
		at := slices.Index(args, want)
		if at < 0 {
			t.Fatalf("no %s in %q", want, args)
		}
		flag, _, _ := strings.Cut(want, "=")
		args[at] = flag + "=127.0.0.1:0"
	}
	args[len(args)-1] = tempo.URL
	running := start(t, exec.CommandContext(t.Context(), here, args...))
	urls := await(t, running, 2, served)
	get(t, urls[0]+"/api/echo")
	get(t, urls[1]+c.ReadinessProbe.HTTPGet.Path)
	get(t, urls[1]+"/metrics")
	end(t, running)

	// Grafana finds the proxy under the Service's name.
	text, err := os.ReadFile(filepath.Join(root, "deploy/grafana/datasource.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var provisioned struct{ Datasources []struct{ Type, URL string } }
	if err := yaml.Unmarshal(text, &provisioned); err != nil || len(provisioned.Datasources) != 1 {
		t.Fatalf("%+v, %v", provisioned, err)
	}
	want := fmt.Sprintf("http://traceflake-proxy.traceflake:%d", ports[0].Port)
	if got := provisioned.Datasources[0]; got.URL != want || got.Type != "tempo" {
		t.Errorf("the data source is %+v, the Service %s", got, want)
	}
}
