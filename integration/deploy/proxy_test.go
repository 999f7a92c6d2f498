package deploy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// proxyManifests is rendered in place of a store's.
const proxyManifests = "../proxy"

// With the arguments of the manifest the command forwards requests at the Service's port, and
// answers the probes at another port, which the Service does not publish. Grafana uses the
// Service's name.
func TestLookupProxy(t *testing.T) {
	here, inImage := program(t, "cmd/traceflake/Dockerfile")
	objects := render(t, proxyManifests, "monitoring")
	spec, c := service(t, objects)
	if len(c.Command) != 1 || c.Command[0] != inImage {
		t.Errorf("the command is %q, the image has %s", c.Command, inImage)
	}
	port := published(t, objects)
	for _, p := range []*probe{c.ReadinessProbe, c.LivenessProbe} {
		if p.HTTPGet.Port != c.Ports[1].Name {
			t.Errorf("a probe asks %+v", p)
		}
	}
	if sleep := c.Lifecycle.PreStop.Sleep.Seconds; sleep <= 0 ||
		spec.Spec.TerminationGracePeriodSeconds < sleep+2*5 {
		t.Errorf("the pod has %d s to end, %d of them before the signal",
			spec.Spec.TerminationGracePeriodSeconds, sleep)
	}

	tempo := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "echo") }))
	t.Cleanup(tempo.Close)
	args := slices.Clone(c.Args)
	for i, flag := range []string{"--listen", "--metrics"} {
		at := slices.Index(args, fmt.Sprintf("%s=:%d", flag, c.Ports[i].ContainerPort))
		if at < 0 {
			t.Fatalf("no %s with %+v in %q", flag, c.Ports[i], args)
		}
		args[at] = flag + "=127.0.0.1:0"
	}
	args[len(args)-1] = tempo.URL
	running := child.Run(t, exec.CommandContext(t.Context(), here, args...))
	urls := child.Await(t, running, 2, child.Served)
	child.Get(t, urls[0]+"/api/echo")
	child.Get(t, urls[1]+c.ReadinessProbe.HTTPGet.Path)
	child.Get(t, urls[1]+"/metrics")
	end(t, running)

	want := fmt.Sprintf(
		"\n    type: tempo\n    access: proxy\n    url: http://traceflake-proxy.traceflake:%d\n",
		port)
	if source := child.Read(t, "deploy/grafana/datasource.yaml"); !strings.Contains(source, want) {
		t.Errorf("the data source does not have\n%s", want)
	}
}
