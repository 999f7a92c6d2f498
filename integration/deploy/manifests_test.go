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
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/traceflake/traceflake/setup"
)

var stores = []string{"kubernetes", "postgres", "s3"}

// render returns what `kubectl apply -k` applies for a store, in a namespace, with the kustomization
// that docs/kubernetes.md shows.
func render(t *testing.T, store, namespace string, components ...string) resmap.ResMap {
	t.Helper()
	documented := regexp.MustCompile("(?s)```yaml\n([^`]*kind: Kustomization[^`]*)```").FindStringSubmatch(read(t, "docs/kubernetes.md"))
	if documented == nil {
		t.Fatal("docs/kubernetes.md shows no kustomization")
	}
	dir := t.TempDir()
	manifests, err := filepath.Abs(filepath.Join(root, "deploy/kubernetes"))
	if err == nil {
		manifests, err = filepath.Rel(dir, manifests)
	}
	if err != nil {
		t.Fatal(err)
	}
	overlay := regexp.MustCompile(`(?m)^namespace: .*$`).ReplaceAllString(documented[1], "namespace: "+namespace)
	overlay = regexp.MustCompile(`https://\S*//deploy/kubernetes/stores/kubernetes\?ref=\S+`).
		ReplaceAllString(overlay, manifests+"/stores/"+store)
	for _, c := range components {
		overlay += "components: [" + manifests + "/" + c + "]\n"
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(overlay), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// object decodes the only object of a kind.
func object(t *testing.T, objects resmap.ResMap, kind string, into any) {
	t.Helper()
	found := 0
	for _, r := range objects.Resources() {
		if r.GetKind() == kind {
			found++
			text, err := r.AsYAML()
			if err == nil {
				err = yaml.Unmarshal(text, into)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if found != 1 {
		t.Fatalf("%d objects of kind %s", found, kind)
	}
}

type template struct {
	Metadata struct{ Labels map[string]string }
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
	if len(svc.Spec.Ports) != 1 || svc.Spec.Ports[0].TargetPort != c.Ports[0].Name || !maps.Equal(svc.Spec.Selector, pod.Metadata.Labels) {
		t.Fatalf("the Service %+v is not for the pods %+v", svc, pod)
	}
	return svc.Spec.Ports[0].Port
}

// What the manifests of each store refer to exists, and nobody runs with a secret from here.
func TestManifests(t *testing.T) {
	for _, store := range stores {
		t.Run(store, func(t *testing.T) {
			objects := render(t, store, "orders")
			for _, r := range objects.Resources() {
				if r.GetKind() == "Secret" {
					t.Errorf("the manifests contain the secret %s: somebody would run with it", r.GetName())
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
			if selected := budget.Spec.Selector.MatchLabels; len(selected) == 0 || !maps.Equal(selected, pod.Metadata.Labels) {
				t.Errorf("the pods have %v, the PodDisruptionBudget selects %v", pod.Metadata.Labels, selected)
			}
			env := make(map[string]string)
			var set []string
			for _, v := range c.Env {
				env[v.Name] = v.Value
				set = append(set, v.Name+"=")
			}
			if unknown := setup.Unknown(set); len(unknown) > 0 {
				t.Errorf("nothing reads %q", unknown)
			}
			// /ready has a port of its own: its answer is not for the Service's clients.
			// Tracing is no start dependency.
			if port := c.Ports[1].ContainerPort; port == c.Ports[0].ContainerPort || env[probeVar] != fmt.Sprintf(":%d", port) ||
				c.ReadinessProbe.TCPSocket.Port != c.Ports[0].Name || c.StartupProbe != nil || env[setup.StrictVar] != "" {
				t.Errorf("/ready and its probes: %+v", c)
			}
			// The secret file is a key of the secret that the operator creates.
			volume, mount := pod.Spec.Volumes[0], c.VolumeMounts[0]
			if volume.Secret.SecretName != "traceflake" || volume.Secret.Items[0].Key != "secret" || volume.Name != mount.Name ||
				env[setup.SecretFileVar] != path.Join(mount.MountPath, volume.Secret.Items[0].Path) {
				t.Errorf("%s in %v is not in %+v, mounted as %+v", setup.SecretFileVar, env, volume, mount)
			}
			// A token of the service account is in the pod only if the store needs it.
			if got := pod.Spec.AutomountServiceAccountToken; got != (store == "kubernetes") {
				t.Errorf("automountServiceAccountToken is %t", got)
			}
			// A pod has time to serve its last requests, 10 s, and to give its lease back.
			if sleep := c.Lifecycle.PreStop.Sleep.Seconds; sleep <= 0 || pod.Spec.TerminationGracePeriodSeconds < sleep+10+5 {
				t.Errorf("a grace of %d s, %d of them before the signal", pod.Spec.TerminationGracePeriodSeconds, sleep)
			}
		})
	}
	// The strict variant is a component on top of any store.
	_, c := service(t, render(t, "postgres", "orders", "strict"))
	if !slices.Contains(c.Env, variable{Name: setup.StrictVar, Value: "1"}) || c.StartupProbe == nil ||
		c.StartupProbe.HTTPGet.Path != "/ready" || c.StartupProbe.HTTPGet.Port != c.Ports[1].Name {
		t.Errorf("strict: %+v, %+v", c.Env, c.StartupProbe)
	}
}

// probeVar is where the example service serves /ready.
const probeVar = "PROBE_ADDRESS"

// proxyManifests is rendered in place of a store's.
const proxyManifests = "../proxy"

// With the arguments of the manifest the command forwards what arrives at the Service's port, and
// answers the probes at another, which the Service does not publish. Grafana finds it under the
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
	if sleep := c.Lifecycle.PreStop.Sleep.Seconds; sleep <= 0 || spec.Spec.TerminationGracePeriodSeconds < sleep+2*5 {
		t.Errorf("the pod has %d s to end, %d of them before the signal", spec.Spec.TerminationGracePeriodSeconds, sleep)
	}

	tempo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "echo") }))
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
	running := start(t, exec.CommandContext(t.Context(), here, args...))
	urls := await(t, running, 2, served)
	get(t, urls[0]+"/api/echo")
	get(t, urls[1]+c.ReadinessProbe.HTTPGet.Path)
	get(t, urls[1]+"/metrics")
	end(t, running)

	want := fmt.Sprintf("\n    type: tempo\n    access: proxy\n    url: http://traceflake-proxy.traceflake:%d\n", port)
	if source := read(t, "deploy/grafana/datasource.yaml"); !strings.Contains(source, want) {
		t.Errorf("the data source does not have\n%s", want)
	}
}
