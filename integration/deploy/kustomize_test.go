package deploy

import (
	"fmt"
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
)

var stores = []string{"kubernetes", "postgres", "s3"}

// render returns what `kubectl apply -k` applies for a store, in a namespace, with the
// kustomization that docs/kubernetes.md shows. After the store come components, by name, and
// further objects.
func render(t *testing.T, store, namespace string, more ...string) resmap.ResMap {
	t.Helper()
	blocks := child.Blocks(child.Read(t, "docs/kubernetes.md"), "yaml")
	documented := slices.IndexFunc(blocks, func(block string) bool {
		return strings.Contains(block, "kind: Kustomization")
	})
	if documented < 0 {
		t.Fatal("docs/kubernetes.md shows no kustomization")
	}
	dir := t.TempDir()
	manifests, err := filepath.Rel(dir, filepath.Join(child.Repository, "deploy/kubernetes"))
	if err != nil {
		t.Fatal(err)
	}
	overlay := regexp.MustCompile(`(?m)^namespace: .*$`).ReplaceAllString(blocks[documented],
		"namespace: "+namespace)
	overlay = regexp.MustCompile(`https://\S*//deploy/kubernetes/stores/kubernetes\?ref=\S+`).
		ReplaceAllString(overlay, manifests+"/stores/"+store)
	for i, m := range more {
		if !strings.HasPrefix(m, "{") {
			overlay += "components: [" + manifests + "/" + m + "]\n"
			continue
		}
		name := fmt.Sprintf("object-%d.yaml", i)
		child.Write(t, filepath.Join(dir, name), m)
		overlay = strings.Replace(overlay, "resources:\n", "resources:\n  - "+name+"\n", 1)
	}
	child.Write(t, filepath.Join(dir, "kustomization.yaml"), overlay)
	kustomizer := krusty.MakeKustomizer(krusty.MakeDefaultOptions())
	objects, err := kustomizer.Run(filesys.MakeFsOnDisk(), dir)
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
