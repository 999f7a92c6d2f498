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
	testName = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w*\b`)
	link     = regexp.MustCompile(`\]\(([^)#:]+)[)#]`)
	command  = regexp.MustCompile(`[ "']((?:deploy|examples)/[\w./-]+)`) // whose argument is a file
)

// Pages name the tests that show what they claim, files to use and other pages. RESULTS.md name the
// tests of their commit.
func TestPagesNameWhatExists(t *testing.T) {
	root := wholeRepository(t)
	exists := make(map[string]bool)
	pages := make(map[string]string)
	err := walk(root, func(name string, text []byte) error {
		switch {
		case strings.HasSuffix(name, "_test.go"):
			for _, f := range testFunc.FindAllSubmatch(text, -1) {
				exists[string(f[1])] = true
			}
		case strings.HasSuffix(name, ".md") && !strings.HasSuffix(name, "RESULTS.md"):
			pages[name] = string(text)
		}
		return nil
	})
	if err != nil || len(exists) == 0 || len(pages) == 0 {
		t.Fatalf("%d tests, %d pages: %v", len(exists), len(pages), err)
	}
	for page, text := range pages {
		for _, name := range testName.FindAllString(text, -1) {
			if !exists[name] {
				t.Errorf("%s names %s, which does not exist", page, name)
			}
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if _, err := fs.Stat(root, path.Join(path.Dir(page), m[1])); err != nil {
				t.Errorf("%s has a link to nothing: %v", page, err)
			}
		}
		for _, m := range command.FindAllStringSubmatch(text, -1) {
			if _, err := fs.Stat(root, path.Clean(m[1])); err != nil {
				t.Errorf("%s names no file: %v", page, err)
			}
		}
	}
}

// wholeRepository returns the repository, or skips the test in a copy of the root module alone.
func wholeRepository(t *testing.T) fs.FS {
	t.Helper()
	root := os.DirFS("../..")
	if _, err := fs.Stat(root, "go.work"); err != nil {
		t.Skip("the other modules are not here: this is a copy of the root module alone")
	}
	return root
}

// walk calls f for every file of a tree, except for what tools keep there.
func walk(tree fs.FS, f func(name string, text []byte) error) error {
	return fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (d.Name()[0] == '.' || d.Name() == "testdata" || d.Name() == "node_modules"):
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
