package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// tree is the repository, or a copy of it.
type tree struct {
	dir     string
	modules []mod
	next    string // the version that the modules require of each other
}

// mod is a module of the workspace.
type mod struct {
	path string
	dir  string // below the tree's, with slashes; "." for the root module
	file *modfile.File
}

func trim(b []byte) []byte { return bytes.TrimSpace(b) }

// openTree reads go.work and the go.mod of each module, and checks that others can require the
// modules for users.
func openTree(dir string) (*tree, error) {
	t := &tree{dir: dir}
	data, err := os.ReadFile(filepath.Join(dir, "go.work"))
	if err != nil {
		return nil, err
	}
	work, err := modfile.ParseWork("go.work", data, nil)
	if err != nil {
		return nil, err
	}
	for _, use := range work.Use {
		m := mod{dir: filepath.ToSlash(filepath.Clean(use.Path))}
		name := filepath.Join(dir, m.dir, "go.mod")
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if m.file, err = modfile.Parse(name, data, nil); err != nil {
			return nil, err
		}
		m.path = m.file.Module.Mod.Path
		t.modules = append(t.modules, m)
	}
	return t, t.check()
}

// apart are the modules outside of the workspace: servers for tests, with the versions of
// dependencies that they require.
var apart = []string{"integration/servers/kubernetes/apiserver"}

// forUsers reports whether a module is released. The others only serve this repository.
func (m mod) forUsers() bool {
	for part := range strings.SplitSeq(m.dir, "/") {
		if slices.Contains([]string{"internal", "integration", "examples", "bench"}, part) || part[0] == '_' {
			return false
		}
	}
	return true
}

// released returns the modules for users.
func (t *tree) released() (all []mod) {
	for _, m := range t.modules {
		if m.forUsers() {
			all = append(all, m)
		}
	}
	return all
}

// unreplaced returns the modules for users, and the others that require them by version alone.
func (t *tree) unreplaced() (all []mod) {
	for _, m := range t.modules {
		requires := slices.ContainsFunc(m.file.Require, func(r *modfile.Require) bool { return t.isReleased(r.Mod.Path) })
		if m.forUsers() || requires && len(m.file.Replace) == 0 {
			all = append(all, m)
		}
	}
	return all
}

func (t *tree) isReleased(path string) bool {
	return slices.ContainsFunc(t.released(), func(m mod) bool { return m.path == path })
}

// check finds mistakes that would break a user's build, and sets the next version.
func (t *tree) check() error {
	var wrong []error
	for _, m := range t.released() {
		for _, r := range m.file.Replace {
			wrong = append(wrong, fmt.Errorf("%s/go.mod replaces %s: users' builds ignore that; replace it in go.work", m.dir, r.Old.Path))
		}
		for _, r := range m.file.Require {
			if !strings.HasPrefix(r.Mod.Path, t.modules[0].path) {
				continue
			}
			if t.next == "" {
				t.next = r.Mod.Version
			}
			switch {
			case !t.isReleased(r.Mod.Path):
				wrong = append(wrong, fmt.Errorf("%s/go.mod requires %s, which is not released", m.dir, r.Mod.Path))
			case r.Mod.Version != t.next:
				wrong = append(wrong, fmt.Errorf("%s/go.mod requires %s %s, and another module requires %s", m.dir, r.Mod.Path, r.Mod.Version, t.next))
			}
		}
	}
	return errors.Join(wrong...)
}

// packages returns the packages of a module that users can import.
func (t *tree) packages(ctx context.Context, m mod) ([]string, error) {
	list, err := command(ctx, filepath.Join(t.dir, m.dir), nil,
		"go", "list", "-f", `{{if ne .Name "main"}}{{.ImportPath}}{{end}}`, "./...")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(strings.Fields(list), func(p string) bool {
		return slices.Contains(strings.Split(p, "/"), "internal")
	}), nil
}

// complete checks that each module is in the workspace and that each package has a program that
// uses it.
func (t *tree) complete(ctx context.Context) error {
	known, err := command(ctx, t.dir, nil, "git", "ls-files", "go.mod", "*/go.mod")
	if err != nil {
		return err
	}
	var wrong []error
	for name := range strings.FieldsSeq(known) {
		if !slices.Contains(apart, path.Dir(name)) && !slices.ContainsFunc(t.modules, func(m mod) bool { return m.dir == path.Dir(name) }) {
			wrong = append(wrong, fmt.Errorf("%s is not in go.work", name))
		}
	}
	for _, m := range t.released() {
		packages, err := t.packages(ctx, m)
		if err != nil {
			return err
		}
		for _, p := range packages {
			if dir := t.program(p); len(sources(filepath.Join(t.dir, dir))) == 0 {
				wrong = append(wrong, fmt.Errorf("no program uses %s: write %s/main.go", p, dir))
			}
		}
	}
	return errors.Join(wrong...)
}

// program returns the folder, relative to the tree's, of the program that uses a package.
func (t *tree) program(pkg string) string {
	return path.Join("internal/release/consumers", strings.TrimPrefix(pkg, t.modules[0].path))
}

func sources(dir string) []string {
	names, _ := filepath.Glob(filepath.Join(dir, "*.go")) // fails only if the pattern is malformed
	return names
}

// at returns a go.mod that requires our modules at a version.
func (t *tree) at(m mod, version string) ([]byte, error) {
	file, err := modfile.Parse(m.file.Syntax.Name, modfile.Format(m.file.Syntax), nil)
	if err != nil {
		return nil, err
	}
	for _, r := range slices.Clone(file.Require) {
		if t.isReleased(r.Mod.Path) {
			if err := file.AddRequire(r.Mod.Path, version); err != nil {
				return nil, err
			}
		}
	}
	return file.Format()
}

// setVersion writes the version into each go.mod and into go.work.
func (t *tree) setVersion(version string) error {
	for _, m := range t.modules {
		data, err := t.at(m, version)
		if err == nil {
			err = os.WriteFile(filepath.Join(t.dir, m.dir, "go.mod"), data, 0o644)
		}
		if err != nil {
			return err
		}
	}
	name := filepath.Join(t.dir, "go.work")
	work, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	work = bytes.ReplaceAll(work, []byte(" "+t.next+" => ./"), []byte(" "+version+" => ./"))
	return os.WriteFile(name, work, 0o644)
}
