// Package rooms checks what no compiler does: which package imports which, the length of lines, and
// that the tests, links and files named in pages exist, and the tests named in comments. It belongs
// to the root module, since go test takes a result from its cache unless a file below the tested
// module has changed.
package rooms

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`)
	comment  = regexp.MustCompile(`(?m)//.*$`)
	testName = regexp.MustCompile(`\b((?:Test|Fuzz)[A-Z]\w*)(?:[^\w(]|$)`) // without parameters
	command  = regexp.MustCompile(`[ "']((?:deploy|examples)/[\w./-]+)`)   // of a file
)

// Tests and files that a page refers to exist. A RESULTS.md refers to the tests of its commit.
func TestPagesNameWhatExists(t *testing.T) {
	root := tree(t)
	exists := make(map[string]bool)
	pages := make(map[string]string)
	comments := make(map[string]string)
	err := walk(root, func(name string, text []byte) error {
		switch {
		case strings.HasSuffix(name, ".go"):
			for _, f := range testFunc.FindAllSubmatch(text, -1) {
				exists[string(f[1])] = true
			}
			comments[name] = strings.Join(comment.FindAllString(string(text), -1), "\n")
		case strings.HasSuffix(name, ".md") && !strings.HasSuffix(name, "RESULTS.md"):
			pages[name] = string(text)
		}
		return nil
	})
	if err != nil || len(exists) == 0 || len(pages) == 0 {
		t.Fatalf("%d tests, %d pages: %v", len(exists), len(pages), err)
	}
	for _, texts := range []map[string]string{pages, comments} {
		for file, text := range texts {
			for _, m := range testName.FindAllStringSubmatch(text, -1) {
				if !exists[m[1]] {
					t.Errorf("%s names %s, which does not exist", file, m[1])
				}
			}
		}
	}
	for page, text := range pages {
		for _, m := range command.FindAllStringSubmatch(text, -1) {
			if _, err := fs.Stat(root, path.Clean(m[1])); err != nil {
				t.Errorf("%s names no file: %v", page, err)
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
