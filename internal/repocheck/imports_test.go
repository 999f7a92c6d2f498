// Package repocheck checks what no compiler does: which package imports which, and that what pages
// mention exists. It belongs to the root module, since go test takes a result from its cache
// unless a file below the tested module has changed.
package repocheck

import (
	_ "embed" // the table
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/traceflake/traceflake/"

// The table says what the files of a folder may import, or with /... those of all folders below it;
// a line for a folder replaces those above it. Our packages stand without the module's path. "-os"
// forbids a package of the standard library, which is allowed otherwise; "*" allows all packages of
// others. "tests of FOLDER" is what tests may import in addition. A word in capitals stands for the
// words of its own line.
//
//go:embed imports.txt
var table string

// imports is the table: the words of each line, by what precedes the colon.
type imports map[string][]string

func parseTable(text string) imports {
	all, name := make(imports), ""
	for line := range strings.Lines(text) {
		words, _, _ := strings.Cut(line, "#")
		if start, rest, ok := strings.Cut(words, ":"); ok { // otherwise it continues a line
			name, words = start, rest
			all[name] = nil
		}
		for _, word := range strings.Fields(words) {
			set := []string{word}
			if word == strings.ToUpper(word) && all[word] != nil {
				set = all[word]
			}
			all[name] = append(all[name], set...)
		}
	}
	return all
}

// line returns the name of the line for a folder: its own, or that of the nearest folder above it.
func (all imports) line(prefix, folder string) string {
	for name := folder; ; name, folder = path.Join(folder, "..."), path.Dir(folder) {
		if _, ok := all[prefix+name]; ok || name == "..." {
			return prefix + name
		}
	}
}

// allows reports whether a file may import a package, and notes each word that allowed it.
func (all imports) allows(file, pkg string, used map[string]bool) bool {
	folder, test := path.Dir(file), strings.HasSuffix(file, "_test.go")
	names := []string{all.line("", folder)}
	if test {
		names = append(names, all.line("tests of ", folder))
	}
	pkg, ours := strings.CutPrefix(pkg, module)
	first, _, _ := strings.Cut(pkg, "/")
	standard := !ours && !strings.Contains(first, ".")
	_, known := all[names[0]]
	allowed := known && (standard || test && pkg == folder)
	for _, name := range names {
		for _, word := range all[name] {
			forbidden, no := strings.CutPrefix(word, "-")
			switch {
			case no && !test && standard && within(pkg, forbidden+"/..."):
				return false
			case !no && (within(pkg, word) || word == "*" && !ours && !standard):
				allowed = true
				used[name+" "+word] = true
			}
		}
	}
	return allowed && pkg != "math/rand" && !strings.HasPrefix(pkg, "github.com/stretchr/testify")
}

// within reports whether a package is the one of a word, or below it if the word ends in /...
func within(pkg, word string) bool {
	above, tree := strings.CutSuffix(word, "/...")
	return pkg == above || tree && strings.HasPrefix(pkg, above+"/")
}

// TestImports compares the table with all files, also with those that this system does not build.
func TestImports(t *testing.T) {
	all, used := parseTable(table), make(map[string]bool)
	err := walk(tree(t), func(name string, text []byte) error {
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			if pkg := strings.Trim(spec.Path.Value, "\"`"); !all.allows(name, pkg, used) {
				t.Errorf("%s may not import %s: see internal/repocheck/imports.txt", name, pkg)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, word := range all[name] {
			if name != strings.ToUpper(name) && word[0] != '-' && !used[name+" "+word] {
				t.Errorf("imports.txt: %s: nothing imports %s", name, word)
			}
		}
	}
}

// TestImportsAreRefused plants what the table must refuse. A slash marks our packages.
func TestImportsAreRefused(t *testing.T) {
	all := parseTable(table)
	for planted := range strings.Lines(`sparx64/block.go time os
sparx64/sparx64_test.go /lease/etcdstore github.com/stretchr/testify/require
randflake/codec.go context net/http math/rand go.opentelemetry.io/otel /idgen
traceid/verify.go /idgen go.opentelemetry.io/otel/sdk/trace
idgen/generator.go /lease os
lease/keeper.go /lease/driver /idgen database/sql
lease/internal/engine/block.go /lease/leasetest /lease/fleet
lease/etcdstore/store.go github.com/jackc/pgx/v5
lease/new/store.go fmt
propagation/xtraceid/inject.go /traceid google.golang.org/grpc
clickhouse/query.go github.com/ClickHouse/clickhouse-go/v2
clickhouse/query_test.go /cmd/traceflake/cli
lease/fleet/fleet.go /lease/pgstore
examples/otelhttp/main.go /internal/version
cmd/traceflake/main.go /integration/servers
integration/servers/query.go /clickhouse
new/file.go fmt
new/file_test.go fmt`) {
		words := strings.Fields(planted)
		for _, pkg := range words[1:] {
			pkg = regexp.MustCompile("^/").ReplaceAllString(pkg, module)
			if all.allows(words[0], pkg, make(map[string]bool)) {
				t.Errorf("%s may import %s", words[0], pkg)
			}
		}
	}
}

// tree returns the repository.
func tree(t *testing.T) fs.FS {
	t.Helper()
	root := os.DirFS("../..")
	if _, err := fs.Stat(root, "go.work"); err != nil {
		t.Skip("the other modules are not here: this is a copy of the root module alone")
	}
	return root
}

// walk calls f for every file of a tree, except for files of tools.
func walk(tree fs.FS, f func(name string, text []byte) error) error {
	return fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." &&
			(d.Name()[0] == '.' || d.Name() == "testdata" || d.Name() == "node_modules"):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		return f(name, text)
	})
}
