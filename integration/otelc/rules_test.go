// Package otelc tests the rules of module otelc on copies of the packages that they change: the
// tool otelc is not published as a Go module.
package otelc_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

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
		begin := "^func "
		if r.Where.Recv != "" {
			begin += `\(\w+ ` + regexp.QuoteMeta(r.Where.Recv) + `\) `
		}
		begin += r.Where.Func + `\((\w*).*\{$` // with the name of the first parameter
		code := strings.ReplaceAll(r.Do[0].InjectCode.Raw, "{{ .FuncArgument 0 }}", "$1")
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			write(t, file, regexp.MustCompile("(?m)"+begin).ReplaceAllString(read(t, file), "$0\n"+code))
		}
	}
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
