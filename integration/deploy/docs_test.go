package deploy

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The tests and files that the pages name are there.
func TestPagesNameWhatThereIs(t *testing.T) {
	defined := make(map[string]bool)
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != root && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(name)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(source, -1) {
			defined[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs/*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("pages: %v, %v", pages, err)
	}
	for _, name := range pages {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("`(Test\\w+)`").FindAllSubmatch(page, -1) {
			if !defined[string(m[1])] {
				t.Errorf("%s names %s, which is not there", name, m[1])
			}
		}
		for _, m := range regexp.MustCompile(`\]\(([^)#:]+)[)#]`).FindAllSubmatch(page, -1) {
			if _, err := os.Stat(filepath.Join(root, "docs", string(m[1]))); err != nil {
				t.Errorf("%s has a link to nothing: %v", name, err)
			}
		}
		for _, m := range regexp.MustCompile(`[ "'](deploy/[\w./-]+|examples/[\w./-]+)`).FindAllSubmatch(page, -1) {
			if _, err := os.Stat(filepath.Join(root, string(m[1]))); err != nil {
				t.Errorf("%s has a path of nothing: %v", name, err)
			}
		}
	}
}
