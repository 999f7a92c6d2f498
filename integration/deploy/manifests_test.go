package deploy

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/internal/settings"
)

var stores = []string{"kubernetes", "postgres", "s3"}

// render returns what `kubectl apply -k` applies for a store, in a namespace, with the
// kustomization that docs/kubernetes.md shows. After the store come components, by name, and
// further objects.
func render(t *testing.T, store, namespace string, more ...string) resmap.ResMap {
	t.Helper()
	documented := regexp.MustCompile(
		"(?s)```yaml\n([^`]*kind: Kustomization[^`]*)```").FindStringSubmatch(
		child.Read(t, "docs/kubernetes.md"))
	if documented == nil {
		t.Fatal("docs/kubernetes.md shows no kustomization")
	}
	dir := t.TempDir()
	manifests, err := filepath.Rel(dir, filepath.Join(child.Repository, "deploy/kubernetes"))
	if err != nil {
		t.Fatal(err)
	}
	overlay := regexp.MustCompile(`(?m)^namespace: .*$`).ReplaceAllString(documented[1],
		"namespace: "+namespace)
	overlay = regexp.MustCompile(`https://\S*//deploy/kubernetes/stores/kubernetes\?ref=\S+`).
		ReplaceAllString(overlay, manifests+"/stores/"+store)
	for i, m := range more {
		if !strings.HasPrefix(m, "{") {
			overlay += "components: [" + manifests + "/" + m + "]\n"
			continue
		}
		name := fmt.Sprintf("object-%d.yaml", i)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(m), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay = strings.Replace(overlay, "resources:\n", "resources:\n  - "+name+"\n", 1)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(overlay),
		0o600); err != nil {
		t.Fatal(err)
	}
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(),
		dir)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func decode(t *testing.T, r *resource.Resource, into any) {
	t.Helper()
	text, err := r.AsYAML()
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// object decodes the only object of a kind.
func object(t *testing.T, objects resmap.ResMap, kind string, into any) {
	t.Helper()
	found := 0
	for _, r := range objects.Resources() {
		if r.GetKind() == kind {
			found++
			decode(t, r, into)
		}
	}
	if found != 1 {
		t.Fatalf("%d objects of kind %s", found, kind)
	}
}

type template struct {
	Metadata struct{ Labels, Annotations map[string]string }
	Spec     struct {
		TerminationGracePeriodSeconds int
		AutomountServiceAccountToken  bool
		Containers                    []container
		Volumes                       []struct {
			Name   string
			Secret struct {
				SecretName string
				Items      []struct{ Key, Path string }
			}
		}
	}
}

type container struct {
	Command, Args []string
	Env           []variable
	Ports         []struct {
		Name          string
		ContainerPort int
	}
	StartupProbe, ReadinessProbe, LivenessProbe *probe
	Lifecycle                                   struct {
		PreStop struct{ Sleep struct{ Seconds int } }
	}
	VolumeMounts []struct{ Name, MountPath string }
}

type variable struct {
	Name, Value string
	ValueFrom   struct {
		SecretKeyRef struct{ Name, Key string }
	}
}

type probe struct {
	HTTPGet   struct{ Path, Port string }
	TCPSocket struct{ Port string }
}

// service returns the one Deployment and its one container.
func service(t *testing.T, objects resmap.ResMap) (template, container) {
	t.Helper()
	var d struct{ Spec struct{ Template template } }
	object(t, objects, "Deployment", &d)
	if n := len(d.Spec.Template.Spec.Containers); n != 1 {
		t.Fatalf("%d containers, want 1", n)
	}
	return d.Spec.Template, d.Spec.Template.Spec.Containers[0]
}

// selects reports whether a selector, which is not empty, selects a pod.
func selects(selector map[string]string, pod template) bool {
	for name, value := range selector {
		if pod.Metadata.Labels[name] != value {
			return false
		}
	}
	return len(selector) > 0
}

// published returns the Service's port, which must be the first of the pods that it selects.
func published(t *testing.T, objects resmap.ResMap) (port int) {
	t.Helper()
	var svc struct {
		Spec struct {
			Selector map[string]string
			Ports    []struct {
				Port       int
				TargetPort string
			}
		}
	}
	object(t, objects, "Service", &svc)
	pod, c := service(t, objects)
	if len(svc.Spec.Ports) != 1 || svc.Spec.Ports[0].TargetPort != c.Ports[0].Name ||
		!selects(svc.Spec.Selector, pod) {
		t.Fatalf("the Service %+v is not for the pods %+v", svc, pod)
	}
	return svc.Spec.Ports[0].Port
}

// Everything that the manifests of each store refer to exists, and they contain no secret.
func TestManifests(t *testing.T) {
	for _, store := range stores {
		t.Run(store, func(t *testing.T) {
			objects := render(t, store, "orders")
			for _, r := range objects.Resources() {
				if r.GetKind() == "Secret" {
					t.Errorf("the manifests contain the secret %s: somebody would run with it",
						r.GetName())
				}
			}
			pod, c := service(t, objects)
			published(t, objects)
			var budget struct {
				Spec struct {
					Selector struct{ MatchLabels map[string]string }
				}
			}
			object(t, objects, "PodDisruptionBudget", &budget)
			if selected := budget.Spec.Selector.MatchLabels; !selects(selected, pod) {
				t.Errorf("the pods have %v, the PodDisruptionBudget selects %v",
					pod.Metadata.Labels, selected)
			}
			env := make(map[string]string)
			var set []string
			for _, v := range c.Env {
				env[v.Name] = v.Value
				set = append(set, v.Name+"=")
			}
			if unknown := settings.Unknown(set); len(unknown) > 0 {
				t.Errorf("nothing reads %q", unknown)
			}
			// /ready has a separate port: its answer is not for the Service's clients. No service
			// depends on tracing to start.
			if port := c.Ports[1].ContainerPort; port == c.Ports[0].ContainerPort ||
				env[probeVar] != fmt.Sprintf(":%d", port) ||
				c.ReadinessProbe.TCPSocket.Port != c.Ports[0].Name || c.StartupProbe != nil ||
				env[settings.Strict] != "" {
				t.Errorf("/ready and its probes: %+v", c)
			}
			// The secret file is a key of the secret that the operator creates.
			volume, mount := pod.Spec.Volumes[0], c.VolumeMounts[0]
			if volume.Secret.SecretName != "traceflake" || volume.Secret.Items[0].Key != "secret" ||
				volume.Name != mount.Name ||
				env[settings.SecretFile] != path.Join(mount.MountPath,
					volume.Secret.Items[0].Path) {
				t.Errorf("%s in %v is not in %+v, mounted as %+v", settings.SecretFile, env, volume,
					mount)
			}
			// A token of the service account is in the pod only if the store needs it.
			if got := pod.Spec.AutomountServiceAccountToken; got != (store == "kubernetes") {
				t.Errorf("automountServiceAccountToken is %t", got)
			}
			// A pod has time to serve its last requests, 10 s, and to give its lease back.
			if sleep := c.Lifecycle.PreStop.Sleep.Seconds; sleep <= 0 ||
				pod.Spec.TerminationGracePeriodSeconds < sleep+10+5 {
				t.Errorf("a grace of %d s, %d of them before the signal",
					pod.Spec.TerminationGracePeriodSeconds, sleep)
			}
		})
	}
}

// The strict variant is a component on top of any store, for every Deployment with its label,
// whatever its container's name, and for no other.
func TestStrictManifests(t *testing.T) {
	deployment := func(name, label string) string {
		return fmt.Sprintf(
			`{"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": {"name": %q, "labels": {%s}}, "spec": {"template": {"spec": {"containers":
			[{"name": %[1]q, "image": "i", "env": [{"name": "A", "value": "b"}]}]}}}}`, name, label)
	}
	objects := render(t, "postgres", "orders", "strict",
		deployment("shop", `"traceflake": "leases"`), deployment("cache", ""))
	seen := make(map[string]bool)
	for _, r := range objects.Resources() {
		if r.GetKind() != "Deployment" {
			continue
		}
		var d struct{ Spec struct{ Template template } }
		decode(t, r, &d)
		containers, name := d.Spec.Template.Spec.Containers, r.GetName()
		if len(containers) != 1 {
			t.Errorf("%s has %d containers, want 1", name, len(containers))
		}
		c := containers[0]
		strict := slices.Contains(c.Env, variable{Name: settings.Strict, Value: "1"}) &&
			c.StartupProbe != nil && c.StartupProbe.HTTPGet.Path == "/ready" &&
			c.StartupProbe.HTTPGet.Port == "probes"
		seen[name] = strict
	}
	if want := map[string]bool{"orders": true, "shop": true, "cache": false}; !maps.Equal(seen,
		want) {
		t.Errorf("strict are %v, want %v", seen, want)
	}
}

// The Prometheus operator scrapes the port of the pods that serves /metrics, and its rules are
// those of deploy/prometheus. TRACEFLAKE_UPDATE=1 writes them again.
func TestMonitoring(t *testing.T) {
	const file, head = "deploy/kubernetes/monitoring/rules.yaml",
		`# Written from deploy/prometheus/traceflake.rules.yml, whose comments apply.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: traceflake
spec:
`
	want := head
	for line := range strings.Lines(child.Read(t, "deploy/prometheus/traceflake.rules.yml")) {
		if !strings.HasPrefix(line, "#") {
			want += strings.TrimRight("  "+line, " \n") + "\n"
		}
	}
	if os.Getenv("TRACEFLAKE_UPDATE") != "" {
		if err := os.WriteFile(filepath.Join(child.Repository, file), []byte(want),
			0o644); err != nil {
			t.Fatal(err)
		}
	}
	if child.Read(t, file) != want {
		t.Errorf("%s differs from the rules", file)
	}
	objects := render(t, "s3", "orders", "monitoring")
	var monitor struct {
		Spec struct {
			Selector            struct{ MatchLabels map[string]string }
			PodMetricsEndpoints []struct{ Port, Interval, Path string }
		}
	}
	object(t, objects, "PodMonitor", &monitor)
	pod, c := service(t, objects)
	port := c.Ports[1]
	if endpoints := monitor.Spec.PodMetricsEndpoints; !selects(monitor.Spec.Selector.MatchLabels,
		pod) ||
		len(endpoints) != 1 || endpoints[0].Port != port.Name || endpoints[0].Path != "" {
		t.Errorf("%+v does not scrape %+v of the pods %+v", monitor, port, pod.Metadata)
	}
	if at := pod.Metadata.Annotations; at["prometheus.io/port"] != fmt.Sprint(port.ContainerPort) ||
		at["prometheus.io/scrape"] != "true" {
		t.Errorf("the annotations %v are not for %+v", at, port)
	}
}

// probeVar is where the example service serves /ready.
const probeVar = "PROBE_ADDRESS"

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
