package deploy

import (
	"net"
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

// render returns what `kubectl apply -k` makes of a store's manifests.
func render(t *testing.T, store string) resmap.ResMap {
	t.Helper()
	return build(t, filesys.MakeFsOnDisk(), filepath.Join(root, "deploy/kubernetes/stores", store))
}

func build(t *testing.T, fs filesys.FileSystem, dir string) resmap.ResMap {
	t.Helper()
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, dir)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// renderIn returns a store's manifests in another namespace, with the kustomization that
// docs/kubernetes.md shows.
func renderIn(t *testing.T, store, namespace string) resmap.ResMap {
	t.Helper()
	fs := filesys.MakeFsInMemory()
	source := filepath.Join(root, "deploy/kubernetes")
	err := filepath.WalkDir(source, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return fs.WriteFile("/deploy/kubernetes/"+filepath.ToSlash(strings.TrimPrefix(name, source+"/")), data)
	})
	if err != nil {
		t.Fatal(err)
	}
	overlay := regexp.MustCompile(`(?m)^namespace: .*$`).ReplaceAllString(documented(t), "namespace: "+namespace)
	overlay = regexp.MustCompile(`https://\S*//deploy/kubernetes/stores/kubernetes\?ref=\S+`).
		ReplaceAllString(overlay, "../deploy/kubernetes/stores/"+store)
	if err := fs.WriteFile("/overlay/kustomization.yaml", []byte(overlay)); err != nil {
		t.Fatal(err)
	}
	return build(t, fs, "/overlay")
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
	StartupProbe, ReadinessProbe *probe
	Lifecycle                    struct {
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

var reference = regexp.MustCompile(`\$\(([^)]*)\)`)

// What the manifests of each store refer to exists.
func TestManifests(t *testing.T) {
	for _, store := range stores {
		t.Run(store, func(t *testing.T) {
			objects := render(t, store)
			spec, c := service(t, objects)
			checkEnvironment(t, c)
			checkSecret(t, objects, spec, c)
			checkSelectors(t, objects, spec, c)
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

// checkEnvironment: setup reads every variable of ours, and the kubelet expands every reference: it
// leaves $(NAME) as it is unless NAME stands before it.
func checkEnvironment(t *testing.T, c container) {
	t.Helper()
	read := []string{
		setup.StoreVar, setup.SecretFileVar, setup.NodesVar, setup.BlockSizeVar,
		setup.TTLVar, setup.MaxBlocksVar, setup.StrictVar,
	}
	var names, used []string
	for _, v := range c.Env {
		for _, m := range reference.FindAllStringSubmatch(v.Value, -1) {
			if used = append(used, m[1]); !slices.Contains(names, m[1]) {
				t.Errorf("%s=%s: %s is not set before it", v.Name, v.Value, m[1])
			}
		}
		names = append(names, v.Name)
	}
	for _, name := range names {
		if !slices.Contains(read, name) && !slices.Contains(used, name) {
			t.Errorf("%s: nothing reads it", name)
		}
	}
	if !slices.Contains(names, setup.StoreVar) {
		t.Errorf("%s is not set", setup.StoreVar)
	}
}

// checkSecret checks that the secret file is a key of a Secret that only the operator creates.
func checkSecret(t *testing.T, objects resmap.ResMap, spec template, c container) {
	t.Helper()
	for _, r := range objects.Resources() {
		if r.GetKind() == "Secret" {
			t.Errorf("the manifests have the secret %s: somebody would run with it", r.GetName())
		}
	}
	i := slices.IndexFunc(c.Env, func(v variable) bool { return v.Name == setup.SecretFileVar })
	var files []string
	for _, mount := range c.VolumeMounts {
		for _, v := range spec.Spec.Volumes {
			for _, item := range v.Secret.Items {
				if v.Name == mount.Name && v.Secret.SecretName == "traceflake" && item.Key == "secret" {
					files = append(files, path.Join(mount.MountPath, item.Path))
				}
			}
		}
	}
	if i < 0 || !slices.Contains(files, c.Env[i].Value) {
		t.Errorf("%s is none of the secret's files %q: %+v", setup.SecretFileVar, files, c.Env)
	}
}

// checkSelectors: what the Service, the budget and the probes name is there.
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
	for what, selector := range map[string]map[string]string{
		"Service": svc.Spec.Selector, "PodDisruptionBudget": budget.Spec.Selector.MatchLabels,
	} {
		if len(selector) == 0 {
			t.Errorf("the %s selects every pod", what)
		}
		for k, v := range selector {
			if spec.Metadata.Labels[k] != v {
				t.Errorf("the %s selects %s=%s; the pods have %v", what, k, v, spec.Metadata.Labels)
			}
		}
	}
	if len(c.Ports) != 1 || len(svc.Spec.Ports) != 1 || c.StartupProbe == nil || c.ReadinessProbe == nil {
		t.Fatalf("got %+v, %+v", c, svc)
	}
	for _, port := range []string{
		svc.Spec.Ports[0].TargetPort, c.StartupProbe.HTTPGet.Port, c.ReadinessProbe.TCPSocket.Port,
	} {
		if port != c.Ports[0].Name {
			t.Errorf("port %q, want %q", port, c.Ports[0].Name)
		}
	}
}

// address returns where the service listens, and its port.
func address(t *testing.T, c container) (arg, port string) {
	t.Helper()
	arg = c.Args[len(c.Args)-1]
	_, port, err := net.SplitHostPort(arg)
	if err != nil {
		t.Fatal(err)
	}
	return arg, port
}
