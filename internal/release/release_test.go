package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// This checks the repository itself: openTree finds what would break a user's build.
func TestModulesForUsers(t *testing.T) {
	tree, err := openTree("../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.complete(t.Context()); err != nil {
		t.Error(err)
	}
	if tags := tree.tags("v9.8.7"); !slices.Contains(tags, "v9.8.7") ||
		!slices.Contains(tags, "lease/pgstore/v9.8.7") || !slices.Contains(tags, "cmd/traceflake/v9.8.7") {
		t.Errorf("tags %q", tags)
	}
}

func TestComplete(t *testing.T) {
	dir, put, git := repository(t)
	put("other/go.mod", "module example.com/x/other\n")
	git("add", "-A")
	tree, err := openTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	err = tree.complete(t.Context())
	for _, want := range []string{"other/go.mod is not in go.work", "no program uses example.com/x: write internal/release/consumers/main.go", "no program uses example.com/x/store:"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in: %v", want, err)
		}
	}
}

// repository makes a repository with two modules for users.
func repository(t *testing.T) (dir string, put func(name, text string), git func(args ...string)) {
	t.Helper()
	dir = t.TempDir()
	put = func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git = func(args ...string) {
		t.Helper()
		args = append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)
		if _, err := command(t.Context(), dir, nil, "git", args...); err != nil {
			t.Fatal(err)
		}
	}
	put("go.work", "go 1.26.0\n\nuse (\n\t.\n\t./store\n\t./internal/tests\n)\n\nreplace example.com/x v0.1.0 => ./\n")
	put("go.mod", "module example.com/x\n\ngo 1.26.0\n")
	put("x.go", "package x\n\nfunc Old() {}\n")
	put("store/go.mod", "module example.com/x/store\n\ngo 1.26.0\n\nrequire example.com/x v0.1.0\n")
	put("store/store.go", "package store\n\nimport \"example.com/x\"\n\nfunc Open() { x.Old() }\n")
	put("internal/tests/go.mod", "module example.com/x/internal/tests\n\ngo 1.26.0\n\nrequire example.com/x v0.1.0\n")
	put("internal/tests/tests.go", "package tests\n")
	put("CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- x\n\n## [0.0.1] - 2026-01-01\n\n- y\n")
	git("init", "-q", ".")
	git("add", "-A")
	git("commit", "-qm", "first")
	return dir, put, git
}

func TestCheck(t *testing.T) {
	for want, goMod := range map[string]string{
		"replaces example.com/x":      "require example.com/x v0.1.0\n\nreplace example.com/x => ..\n",
		"which is not released":       "require example.com/x/internal/tests v0.1.0\n",
		"and another module":          "require example.com/x v0.1.0\n\nrequire example.com/x/store v0.2.0\n",
		"invalid go version":          "go 1.26.x\n",
		"usage: require module/path ": "require example.com/x\n",
	} {
		dir, put, _ := repository(t)
		put("store/go.mod", "module example.com/x/store\n\n"+goMod)
		if _, err := openTree(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestPrepare(t *testing.T) {
	dir, put, git := repository(t)
	now := time.Date(2026, 12, 1, 23, 0, 0, 0, time.UTC)
	tree, err := prepare(dir, "v0.2.0", now)
	if err != nil {
		t.Fatal(err)
	}
	if tree.next != "v0.2.0" {
		t.Errorf("the modules require each other at %s", tree.next)
	}
	for name, want := range map[string]string{
		"store/go.mod": "require example.com/x v0.2.0", "internal/tests/go.mod": "require example.com/x v0.2.0",
		"go.work":      "replace example.com/x v0.2.0 => ./",
		"CHANGELOG.md": "## [Unreleased]\n\n## [0.2.0] - 2026-12-01\n\n### Added\n\n- x\n\n## [0.0.1]",
	} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s has no %q: %v\n%s", name, want, err, data)
		}
	}
	git("checkout", "-q", ".")
	put("CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n\n### Added\n\n## [0.0.1] - 2026-01-01\n\n- y\n")
	if _, err := prepare(dir, "v0.2.0", now); err == nil || !strings.Contains(err.Error(), "no entries") {
		t.Errorf("a release without entries: %v", err)
	}
}

func TestAllowed(t *testing.T) {
	dir, put, git := repository(t)
	git("tag", "v0.1.0")
	git("tag", "v0.10.0")
	git("tag", "vendored")
	for version, want := range map[string]string{
		"v0.11.0": "", "v1.0.0-rc.1": "", "v0.9.0": "not later than the last release, v0.10.0", "v0.10.0": "not later",
		"0.11.0": "is not a version", "v0.11": "is not a version", "v2.0.0": "/v2", "v0.11.0+x": "is not a version",
	} {
		if err := allowed(t.Context(), dir, version); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", version, err, want)
		}
	}
	put("new.go", "package x\n")
	if err := allowed(t.Context(), dir, "v0.11.0"); err == nil || !strings.Contains(err.Error(), "?? new.go") {
		t.Errorf("with uncommitted changes: %v", err)
	}
	if err := run(t.Context(), nil, new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "want a version") {
		t.Errorf("no arguments: %v", err)
	}
}

func TestChanges(t *testing.T) {
	dir, put, git := repository(t)
	var out bytes.Buffer
	tree, err := openTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.changes(t.Context(), t.TempDir(), &out); err != nil || !strings.Contains(out.String(), "no release to compare") {
		t.Errorf("%v, %s", err, &out)
	}
	git("tag", "v0.1.0")
	put("x.go", "package x\n\nfunc New() {}\n")
	put("store/store.go", "package store\n\nfunc Open() {}\n")
	git("commit", "-qam", "second")

	// The tool is built in a module of this repository, which the test repository lacks.
	put("internal/release/go.mod", "module example.com/x/internal/release\n")
	tool := filepath.Join(t.TempDir(), "surface")
	if err := buildTool(t.Context(), ".", tool); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := tree.compare(t.Context(), tool, "v0.1.0", t.TempDir(), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Old: removed", "New: added", "example.com/x/store: nothing"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, &out)
		}
	}
}

// The served zip has only the files of the module, a license, and a go.mod that requires the
// version.
func TestServe(t *testing.T) {
	dir, put, _ := repository(t)
	put("LICENSE", "free")
	put("untracked.go", "package x\n")
	put(".gitignore", "ignored.go\n")
	put("ignored.go", "package x\n")
	tree, err := openTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	proxy := t.TempDir()
	if err := tree.serve(context.Background(), proxy, "v0.3.0"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(proxy, "example.com/x/internal")); err == nil {
		t.Error("a module of our own is served")
	}
	env := []string{"GOPROXY=file://" + proxy, "GONOSUMDB=example.com", "GOFLAGS=-modcacherw", "GOMODCACHE=" + t.TempDir(), "GOWORK=off"}
	list, err := command(t.Context(), t.TempDir(), env, "go", "mod", "download", "-json", "example.com/x@v0.3.0", "example.com/x/store@v0.3.0")
	if err != nil {
		t.Fatal(err)
	}
	var dirs []string
	for line := range strings.Lines(list) {
		if _, d, ok := strings.Cut(line, `"Dir": "`); ok {
			dirs = append(dirs, strings.TrimRight(d, "\",\n"))
		}
	}
	for i, want := range []string{
		".gitignore CHANGELOG.md LICENSE go.mod go.work untracked.go x.go", "LICENSE go.mod store.go",
	} {
		entries, err := os.ReadDir(dirs[i])
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if got := strings.Join(names, " "); err != nil || got != want {
			t.Errorf("served %q, want %q: %v", got, want, err)
		}
	}
	if data, err := os.ReadFile(filepath.Join(dirs[1], "go.mod")); err != nil || !strings.Contains(string(data), "example.com/x v0.3.0") {
		t.Errorf("%s: %v", data, err)
	}
}
