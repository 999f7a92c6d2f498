// Package otelc tests the rules of module otelc on copies of the packages that they change: the
// tool otelc is not published as a Go module.
package otelc_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	"go.yaml.in/yaml/v3"
)

// rule is what otelc reads, as far as our rules use it.
type rule struct {
	Target string
	Where  struct{ Func, Recv string }
	Do     []struct {
		AddFile    struct{ File, Path string } `yaml:"add_file"`
		InjectCode struct{ Raw string }        `yaml:"inject_code"`
	}
}

// apply does to the packages in dirs, by import path, what otelc does while it compiles them: it
// adds files, and code at the beginning of functions. A function that does not exist is skipped.
func apply(t *testing.T, rules string, dirs map[string]string) {
	t.Helper()
	var all map[string]rule
	decoder := yaml.NewDecoder(strings.NewReader(read(t, filepath.Join(rules, "otelc.yaml"))))
	decoder.KnownFields(true)
	if err := decoder.Decode(&all); err != nil {
		t.Fatal(err)
	}
	for name, r := range all {
		dir, ok := dirs[r.Target]
		if !ok || len(r.Do) != 1 {
			t.Fatalf("%s: target %q, %d modifiers", name, r.Target, len(r.Do))
		}
		if file := r.Do[0].AddFile.File; file != "" {
			write(t, filepath.Join(dir, file), strings.Replace(read(t, filepath.Join(rules, file)), "//go:build ignore", "", 1))
			continue
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			inject(t, file, r)
		}
	}
}

// inject adds the code to the function in the file, if it is there.
func inject(t *testing.T, file string, r rule) {
	t.Helper()
	source, fset := read(t, file), token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	text := func(node any) string {
		var b bytes.Buffer
		_ = printer.Fprint(&b, fset, node)
		return b.String()
	}
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != r.Where.Func || (f.Recv == nil) != (r.Where.Recv == "") ||
			f.Recv != nil && text(f.Recv.List[0].Type) != r.Where.Recv {
			continue
		}
		var code strings.Builder
		if err := template.Must(template.New("").Parse(r.Do[0].InjectCode.Raw)).Execute(&code, function{f}); err != nil {
			t.Fatal(err)
		}
		at := fset.Position(f.Body.Lbrace).Offset + 1
		write(t, file, source[:at]+"\n"+code.String()+"\n"+source[at:])
	}
}

type function struct{ *ast.FuncDecl }

// FuncArgument returns the name of a parameter, for templates.
func (f function) FuncArgument(i int) string {
	var names []*ast.Ident
	for _, p := range f.Type.Params.List {
		names = slices.Concat(names, p.Names)
	}
	return names[i].Name
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
