package deploy

import (
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// instrumentation has the fields of an Instrumentation that docs/zero-code.md may use, with their
// names in apis/v1alpha1/instrumentation_types.go of OpenTelemetry's operator at commit 01416c28:
// its module is not on every module proxy.
type instrumentation struct {
	APIVersion string                `json:"apiVersion"`
	Kind       string                `json:"kind"`
	Metadata   struct{ Name string } `json:"metadata"`
	Spec       struct {
		Exporter    struct{ Endpoint string }       `json:"exporter"`
		Propagators []string                        `json:"propagators"`
		Sampler     struct{ Type, Argument string } `json:"sampler"`
		Env         []variable                      `json:"env"`
		Java        struct {
			Image      string                        `json:"image"`
			Env        []variable                    `json:"env"`
			Extensions []struct{ Image, Dir string } `json:"extensions"`
		} `json:"java"`
		Python struct {
			Image string     `json:"image"`
			Env   []variable `json:"env"`
		} `json:"python"`
	} `json:"spec"`
}

type variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// The page's YAML has no field that the operator does not know, and chooses our plug-ins where the
// operator's enumeration of propagators does not apply.
func TestZeroCode(t *testing.T) {
	var got instrumentation
	text := child.Blocks(child.Read(t, "docs/zero-code.md"), "yaml")[0]
	if err := yaml.UnmarshalStrict([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict([]byte(text+"  propagator: [b3]\n"), &got); err == nil {
		t.Error("an unknown field is accepted")
	}
	propagators := variable{"OTEL_PROPAGATORS", "tracecontext,baggage,xtraceid"}
	generator := variable{"OTEL_PYTHON_ID_GENERATOR", "traceflake"}
	java, python := got.Spec.Java, got.Spec.Python
	if got.APIVersion != "opentelemetry.io/v1alpha1" || got.Kind != "Instrumentation" ||
		len(got.Spec.Propagators) > 0 || !slices.Equal(java.Env, []variable{propagators}) ||
		!slices.Equal(python.Env, []variable{propagators, generator}) || python.Image == "" ||
		len(java.Extensions) != 1 || java.Extensions[0].Image == "" ||
		java.Extensions[0].Dir != "/extensions" {
		t.Errorf("got %+v", got)
	}
}
