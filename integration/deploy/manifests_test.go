package deploy

import (
	"fmt"
	iofs "io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/traceflake/traceflake/integration/servers/kubernetes"
	"github.com/traceflake/traceflake/integration/servers/s3"
	"github.com/traceflake/traceflake/setup"
)

func TestMain(m *testing.M) {
	s3.Main()
	kubernetes.Main(m)
}

// root is the repository.
const root = "../.."

var stores = []string{"kubernetes", "postgres", "s3"}

// render returns what `kubectl apply -k` applies for a store, in a namespace, with the kustomization
// that docs/kubernetes.md shows.
func render(t *testing.T, store, namespace string, components ...string) resmap.ResMap {
	t.Helper()
	fs := filesys.MakeFsInMemory()
	manifests := os.DirFS(filepath.Join(root, "deploy/kubernetes"))
	err := iofs.WalkDir(manifests, ".", func(name string, entry iofs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := iofs.ReadFile(manifests, name)
		if err != nil {
			return err
		}
		return fs.WriteFile("/deploy/kubernetes/"+name, data)
	})
	if err != nil {
		t.Fatal(err)
	}
	overlay := regexp.MustCompile(`(?m)^namespace: .*$`).ReplaceAllString(documented(t), "namespace: "+namespace)
	overlay = regexp.MustCompile(`https://\S*//deploy/kubernetes/stores/kubernetes\?ref=\S+`).
		ReplaceAllString(overlay, "../deploy/kubernetes/stores/"+store)
	if len(components) > 0 {
		overlay += "components: [" + strings.Join(components, ", ") + "]\n"
	}
	if err := fs.WriteFile("/overlay/kustomization.yaml", []byte(overlay)); err != nil {
		t.Fatal(err)
	}
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, "/overlay")
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// documented returns the kustomization in docs/kubernetes.md.
func documented(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs/kubernetes.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n([^`]*kind: Kustomization[^`]*)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("docs/kubernetes.md shows no kustomization")
	}
	return string(block[1])
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

type deployment struct {
	Spec struct{ Template template }
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
	Name, Image   string
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
		FieldRef     struct{ FieldPath string }
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
	var d deployment
	object(t, objects, "Deployment", &d)
	if n := len(d.Spec.Template.Spec.Containers); n != 1 {
		t.Fatalf("%d containers, want 1", n)
	}
	return d.Spec.Template, d.Spec.Template.Spec.Containers[0]
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
			spec, c := service(t, objects)
			checkSelectors(t, objects, spec, c)
			read := []string{
				setup.StoreVar, setup.SecretFileVar, setup.TTLVar, setup.MaxBlocksVar, setup.StrictVar, probeVar,
			}
			for _, v := range c.Env {
				if !slices.Contains(read, v.Name) {
					t.Errorf("%s: nothing reads it", v.Name)
				}
			}
			// The secret file is a key of the secret that the operator creates.
			i := slices.IndexFunc(c.Env, func(v variable) bool { return v.Name == setup.SecretFileVar })
			secret := spec.Spec.Volumes[0].Secret
			if i < 0 || secret.SecretName != "traceflake" || secret.Items[0].Key != "secret" ||
				spec.Spec.Volumes[0].Name != c.VolumeMounts[0].Name ||
				c.Env[i].Value != path.Join(c.VolumeMounts[0].MountPath, secret.Items[0].Path) {
				t.Errorf("%s in %+v is not in %+v, mounted as %+v", setup.SecretFileVar, c.Env, secret, c.VolumeMounts)
			}
			// A token of the service account is in the pod only if the store needs it.
			if got := spec.Spec.AutomountServiceAccountToken; got != (store == "kubernetes") {
				t.Errorf("automountServiceAccountToken is %t", got)
			}
			// A pod has time to serve its last requests and to give its lease back:
			// TestCollectorIsStuck of examples/otelhttp holds the service to 16 s.
			const end = 16 * time.Second
			grace := time.Duration(spec.Spec.TerminationGracePeriodSeconds) * time.Second
			sleep := time.Duration(c.Lifecycle.PreStop.Sleep.Seconds) * time.Second
			if sleep <= 0 || grace < sleep+end {
				t.Errorf("a grace of %s, want %s before the signal and %s after it", grace, sleep, end)
			}
		})
	}
}

// The strict variant is a component on top of any store.
func TestStrictVariant(t *testing.T) {
	_, c := service(t, render(t, "postgres", "orders", "../deploy/kubernetes/strict"))
	if !slices.Contains(c.Env, variable{Name: setup.StrictVar, Value: "1"}) || c.StartupProbe == nil ||
		c.StartupProbe.HTTPGet.Path != "/ready" || c.StartupProbe.HTTPGet.Port != c.Ports[1].Name {
		t.Errorf("%+v, %+v", c.Env, c.StartupProbe)
	}
}

// checkSelectors checks that the Service, the budget and the probes refer to the pods and their port.
func checkSelectors(t *testing.T, objects resmap.ResMap, spec template, c container) {
	t.Helper()
	var svc struct {
		Spec struct {
			Selector map[string]string
			Ports    []struct{ TargetPort string }
		}
	}
	object(t, objects, "Service", &svc)
	var budget struct {
		Spec struct {
			Selector struct{ MatchLabels map[string]string }
		}
	}
	object(t, objects, "PodDisruptionBudget", &budget)
	if labels := spec.Metadata.Labels; len(labels) == 0 || !maps.Equal(labels, svc.Spec.Selector) || !maps.Equal(labels, budget.Spec.Selector.MatchLabels) {
		t.Errorf("the pods have %v, the Service selects %v, the PodDisruptionBudget %v", labels, svc.Spec.Selector, budget.Spec.Selector.MatchLabels)
	}
	port := c.Ports[0].Name
	if len(svc.Spec.Ports) != 1 || svc.Spec.Ports[0].TargetPort != port || c.ReadinessProbe.TCPSocket.Port != port {
		t.Errorf("not all use the port %q: %+v, %+v", port, svc, c.ReadinessProbe)
	}
	// Its answer is not for the Service's clients.
	probes := variable{Name: probeVar, Value: fmt.Sprintf(":%d", c.Ports[1].ContainerPort)}
	if c.Ports[1].ContainerPort == c.Ports[0].ContainerPort || !slices.Contains(c.Env, probes) {
		t.Errorf("/ready does not have a port of its own: %+v, %+v", c.Ports, c.Env)
	}
	// Tracing is no start dependency.
	if strict := slices.ContainsFunc(c.Env, func(v variable) bool { return v.Name == setup.StrictVar }); strict || c.StartupProbe != nil {
		t.Errorf("a start waits for the store: strict %t, %+v", strict, c.StartupProbe)
	}
}

// probeVar is where the example service serves /ready.
const probeVar = "PROBE_ADDRESS"
