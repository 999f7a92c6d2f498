package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

//go:embed support.txt
var support string

// built is a package with all its mutants, and the binaries of the tests.
type built struct {
	cache    string // directory
	mutants  []mutant
	source   string // hash of the package
	binaries []binary
}

type binary struct {
	path, dir string
	flags     []string
	hash      string
}

// build builds the test binaries with all mutants of a package in them. It does not change the
// package's files: an overlay replaces them.
func (t target) build(ctx context.Context, root string) (*built, error) {
	b := &built{cache: filepath.Join(root, ".cache", "mutants", strings.ReplaceAll(t.dir, "/", "_"))}
	if err := os.MkdirAll(b.cache, 0o777); err != nil {
		return nil, err
	}
	replace, err := t.rewrite(ctx, root, b)
	if err != nil {
		return nil, err
	}
	overlay := filepath.Join(b.cache, "overlay.json")
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(overlay, data, 0o666); err != nil {
		return nil, err
	}
	tests := t.tests
	if tests == nil {
		tests = []string{t.dir}
	}
	for _, dir := range tests {
		path := filepath.Join(b.cache, strings.ReplaceAll(dir, "/", "_")+".test")
		out, err := exec.CommandContext(ctx, "go", "test", "-c", "-buildvcs=false", "-ldflags=-s -w",
			"-overlay", overlay, "-o", path, "./"+dir).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("building the tests in %s: %w\n%s", dir, err, out)
		}
		hash, err := hashOf(path)
		if err != nil {
			return nil, err
		}
		b.binaries = append(b.binaries, binary{path, filepath.Join(root, dir), flags[dir], hash})
	}
	return b, nil
}

// rewrite writes the files that replace the package's.
func (t target) rewrite(ctx context.Context, root string, b *built) (map[string]string, error) {
	fset := token.NewFileSet()
	files, lookup, err := list1(ctx, root, t.dir)
	if err != nil {
		return nil, err
	}
	var parsed []*ast.File
	sources := map[*ast.File][]byte{}
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(fset, name, source, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, f)
		sources[f] = source
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	pkg, err := (&types.Config{Importer: importer.ForCompiler(fset, "gc", lookup)}).Check(t.dir, fset, parsed, info)
	if err != nil {
		return nil, err
	}
	replace := map[string]string{}
	sum := sha256.New()
	for _, f := range parsed {
		name := fset.Position(f.Package).Filename
		r := &rewriter{fset: fset, info: info, pkg: pkg, file: f, source: sources[f], strings: t.text,
			short: t.dir + "/" + filepath.Base(name), seen: map[string]int{}, skip: map[ast.Expr]bool{}, first: len(b.mutants)}
		text := r.rewrite()
		b.mutants = append(b.mutants, r.mutants...)
		replace[name] = filepath.Join(b.cache, filepath.Base(name))
		if err := os.WriteFile(replace[name], []byte(text), 0o666); err != nil {
			return nil, err
		}
		sum.Write([]byte(text))
	}
	b.source = hex.EncodeToString(sum.Sum(nil))[:16]
	extra := filepath.Join(b.cache, "support.go")
	replace[filepath.Join(root, t.dir, "mutants_support.go")] = extra
	text := strings.NewReplacer("PACKAGE", pkg.Name(), "COUNT", strconv.Itoa(max(len(b.mutants), 1))).Replace(support)
	return replace, os.WriteFile(extra, []byte(text), 0o666)
}

// list1 returns the Go files of a package, and a look-up of its compiled imports.
func list1(ctx context.Context, root, dir string) ([]string, importer.Lookup, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-export", "-deps", "-json=ImportPath,Dir,GoFiles,Export", "./"+dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("go list: %w\n%s", err, &stderr)
	}
	exports := map[string]string{}
	var files []string
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir, Export string
			GoFiles                 []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, nil, err
		}
		exports[p.ImportPath] = p.Export
		if p.Dir == filepath.Join(root, dir) {
			for _, f := range p.GoFiles {
				files = append(files, filepath.Join(p.Dir, f))
			}
		}
	}
	return files, func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }, nil
}

func hashOf(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])[:16], nil
}
