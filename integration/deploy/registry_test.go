package deploy

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
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

// parseEntry reads an entry, and returns an error if the registry's schema refuses it.
func parseEntry(text string) (e entry, err error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&e); err != nil {
		return e, err
	}
	require := func(holds bool, problem string) {
		if !holds {
			err = errors.Join(err, errors.New(problem))
		}
	}
	require(e.Title != "", "no title")
	require(e.Description != "", "no description")
	require(e.RegistryType == "utilities", "the type is not utilities")
	require(slices.Contains([]string{"go", "js"}, e.Language), "the language is not go or js")
	require(slices.Contains([]string{"go", "npm"}, e.Package.Registry),
		"the registry is not go or npm")
	require(e.Package.Name != "", "the package has no name")
	require(!strings.Contains(e.License, "Commercial"), "the license is not an open source license")
	require(e.URLs.Repo != "" || e.URLs.Website != "", "neither a repository nor a website")
	tags := slices.Sorted(slices.Values(e.Tags))
	require(len(slices.Compact(tags)) == len(e.Tags), "a tag is there twice")
	_, dateErr := time.Parse(time.DateOnly, e.CreatedAt)
	require(dateErr == nil, "createdAt is not a date")
	require(len(e.Authors) > 0, "no author")
	for _, a := range e.Authors {
		named := a.Name != "" && !strings.Contains(a.Name, "OpenTelemetry")
		require(named, "an author's name is empty or OpenTelemetry")
		require(a.Email != "" || a.URL != "", "an author has neither an email nor a URL")
		require(a.URL == "" || strings.HasPrefix(a.URL, "https://"), "an author's URL is not https")
	}
	return e, err
}

// The entries for OpenTelemetry's registry follow its schema, and contain our packages.
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
		text := child.Read(t, "deploy/registry/"+filepath.Base(file))
		e, err := parseEntry(text)
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if got := e.Package.Name + " " + e.Package.Version; got != want[e.Package.Registry] {
			t.Errorf("%s: package %s, want %s", file, got, want[e.Package.Registry])
		}
		name := fmt.Sprintf("%s-%s-traceflake.yml", e.RegistryType, e.Language)
		if filepath.Base(file) != name {
			t.Errorf("%s: want the name %s", file, name)
		}
		for old, wrong := range map[string]string{
			"title:": "titel:", "registryType: utilities": "registryType: tools",
			"language: ": "language: c", "name: traceflake authors": "name: OpenTelemetry",
			"url: https:": "url: http:", "createdAt: 2026-": "createdAt: 26-",
			"license: Apache 2.0": "license: Commercial", "  repo: ": "  blog: ",
			"registry: ":       "registry: x",
			"  - id-generator": "  - id-generator\n  - id-generator",
			"authors:\n":       "authors: []\nx:\n",
		} {
			if !strings.Contains(text, old) {
				t.Errorf("%s lacks %q", file, old)
			}
			if _, err := parseEntry(strings.Replace(text, old, wrong, 1)); err == nil {
				t.Errorf("%s: %q in place of %q is accepted", file, wrong, old)
			}
		}
	}
}
