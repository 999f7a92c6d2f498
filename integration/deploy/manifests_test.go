package deploy

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/internal/settings"
)

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
	want := map[string]bool{"orders": true, "shop": true, "cache": false}
	if !maps.Equal(seen, want) {
		t.Errorf("strict are %v, want %v", seen, want)
	}
}

// The Prometheus operator scrapes the port of the pods that serves /metrics, and its rules are
// those of deploy/prometheus. TRACEFLAKE_UPDATE=1 writes them again.
func TestMonitoring(t *testing.T) {
	rules := `# Written from deploy/prometheus/traceflake.rules.yml, whose comments apply.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: traceflake
spec:
`
	for line := range strings.Lines(child.Read(t, "deploy/prometheus/traceflake.rules.yml")) {
		if !strings.HasPrefix(line, "#") {
			rules += strings.TrimRight("  "+line, " \n") + "\n"
		}
	}
	child.Matches(t, "deploy/kubernetes/monitoring/rules.yaml", rules)
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
	endpoints := monitor.Spec.PodMetricsEndpoints
	if !selects(monitor.Spec.Selector.MatchLabels, pod) || len(endpoints) != 1 ||
		endpoints[0].Port != port.Name || endpoints[0].Path != "" {
		t.Errorf("%+v does not scrape %+v of the pods %+v", monitor, port, pod.Metadata)
	}
	if at := pod.Metadata.Annotations; at["prometheus.io/port"] != fmt.Sprint(port.ContainerPort) ||
		at["prometheus.io/scrape"] != "true" {
		t.Errorf("the annotations %v are not for %+v", at, port)
	}
}
