package deploy

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// render returns what `kubectl apply -k` applies for a store, in a namespace.
func render(t *testing.T, store, namespace string, components ...string) resmap.ResMap {
	t.Helper()
	dir := t.TempDir()
	manifests, err := filepath.Rel(dir, filepath.Join(child.Repository, "deploy/kubernetes"))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range components {
		components[i] = manifests + "/" + c
	}
	child.Write(t, filepath.Join(dir, "kustomization.yaml"), "namespace: "+namespace+
		"\nresources: ["+manifests+"/stores/"+store+"]\ncomponents: ["+
		strings.Join(components, ", ")+"]\n")
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).
		Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// The kustomizations of all stores and components can be built, and those of a store contain no
// secret.
func TestManifests(t *testing.T) {
	for _, store := range []string{"kubernetes", "postgres", "s3"} {
		kinds := map[string]int{}
		for _, r := range render(t, store, "orders", "strict", "monitoring").Resources() {
			if r.GetNamespace() != "orders" {
				t.Errorf("%s: %s is in the namespace %q", store, r.GetKind(), r.GetNamespace())
			}
			kinds[r.GetKind()]++
		}
		if kinds["Secret"] != 0 || kinds["Deployment"] != 1 || kinds["PodMonitor"] != 1 {
			t.Errorf("%s: %v", store, kinds)
		}
	}
}

// The Prometheus operator's rules are those of deploy/prometheus. TRACEFLAKETEST_UPDATE=1 writes
// them again.
func TestRulesForTheOperator(t *testing.T) {
	rules := slices.Collect(strings.Lines(
		child.Read(t, "deploy/prometheus/traceflake.rules.yml")))
	rules = slices.DeleteFunc(rules, func(line string) bool { return line[0] == '#' })
	want := `# Written from deploy/prometheus/traceflake.rules.yml, whose comments apply.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: traceflake
spec:
`
	for _, line := range rules {
		want += strings.TrimRight("  "+line, " \n") + "\n"
	}
	child.Matches(t, "deploy/kubernetes/monitoring/rules.yaml", want)
}
