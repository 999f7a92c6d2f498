package deploy

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// entry is an entry of OpenTelemetry's registry, with the fields that its schema
// (opentelemetry.io/ecosystem/registry/schema.json) allows and that we use.
type entry struct {
	Title        string
	RegistryType string `yaml:"registryType"`
	Language     string
	Tags         []string
	License      string
	Description  string
	Authors      []struct{ Name, Email, URL string }
	URLs         struct{ Repo, Docs, Website, Blog string } `yaml:"urls"`
	CreatedAt    string                                     `yaml:"createdAt"`
	Package      struct{ Registry, Name, Version string }
}

// The entries for OpenTelemetry's registry have fields of its schema, and contain our packages. The
// registry's own checks know the schema better: they run when an entry is submitted.
func TestRegistryEntries(t *testing.T) {
	var npm struct{ Name, Version string }
	if err := json.Unmarshal([]byte(child.Read(t, "clients/js/package.json")), &npm); err != nil {
		t.Fatal(err)
	}
	path, _, _ := strings.Cut(strings.TrimPrefix(child.Read(t, "go.mod"), "module "), "\n")
	want := map[string]string{
		"go":  path + " v" + npm.Version, // .ci/release gives both the same version
		"npm": npm.Name + " " + npm.Version,
	}
	files, err := filepath.Glob("../../deploy/registry/*.yml")
	if err != nil || len(files) != len(want) {
		t.Fatalf("%d entries, %v, want %d", len(files), err, len(want))
	}
	for _, file := range files {
		decoder := yaml.NewDecoder(strings.NewReader(child.Read(t, "deploy/registry/"+
			filepath.Base(file))))
		decoder.KnownFields(true)
		var e entry
		if err := decoder.Decode(&e); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if got := e.Package.Name + " " + e.Package.Version; got != want[e.Package.Registry] {
			t.Errorf("%s: package %s, want %s", file, got, want[e.Package.Registry])
		}
		name := fmt.Sprintf("%s-%s-traceflake.yml", e.RegistryType, e.Language)
		if _, err := time.Parse(time.DateOnly, e.CreatedAt); err != nil ||
			filepath.Base(file) != name || e.Title == "" || e.Description == "" ||
			e.URLs.Repo == "" || len(e.Authors) == 0 || e.Authors[0].URL == "" {
			t.Errorf("%s, %v: want the name %s and every field:\n%+v", file, err, name, e)
		}
	}
}
