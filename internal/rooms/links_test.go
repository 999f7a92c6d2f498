package rooms

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

var (
	// A link to a file or a heading of this repository: in a page, and by its address anywhere.
	relative = regexp.MustCompile(`\]\(([^)#:\s]*)(?:#([^)\s]*))?\)`)
	address  = regexp.MustCompile(
		`//github\.com/traceflake/traceflake/blob/main/([\w./-]*[\w/])(?:#([\w-]+))?`)
	fence       = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	heading     = regexp.MustCompile(`(?m)^#+ (.*)$`)
	linked      = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	punctuation = regexp.MustCompile(`[^\pL\pN _-]`)
)

// anchors returns the names that GitHub gives to a page's headings.
func anchors(page string) (names []string) {
	seen := make(map[string]int)
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		text := linked.ReplaceAllString(m[1], "$1")
		name := strings.ReplaceAll(
			punctuation.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
		if seen[name]++; seen[name] > 1 {
			name = fmt.Sprintf("%s-%d", name, seen[name]-1)
		}
		names = append(names, name)
	}
	return names
}

// broken returns the links in a file that lead to nothing.
func broken(tree fs.FS, name, text string) (links []string) {
	check := func(link, file, anchor string) {
		page, err := fs.ReadFile(tree, file)
		if err != nil {
			_, err = fs.Stat(tree, file) // a folder
		}
		if err != nil || strings.HasSuffix(file, ".md") && anchor != "" &&
			!slices.Contains(anchors(string(page)), anchor) {
			links = append(links, link)
		}
	}
	if strings.HasSuffix(name, ".md") {
		for _, m := range relative.FindAllStringSubmatch(text, -1) {
			file := name
			if m[1] != "" {
				file = path.Join(path.Dir(name), m[1])
			}
			check(m[0], file, m[2])
		}
	}
	for _, m := range address.FindAllStringSubmatch(text, -1) {
		check(m[0], path.Clean(m[1]), m[2])
	}
	return links
}

// Links to files and headings of this repository lead somewhere: in pages, manifests and code.
func TestLinks(t *testing.T) {
	root, found := tree(t), 0
	err := walk(root, func(name string, text []byte) error {
		found += len(relative.FindAll(text, -1))
		for _, link := range broken(root, name, string(text)) {
			t.Errorf("%s has a link to nothing: %s", name, link)
		}
		return nil
	})
	if err != nil || found == 0 {
		t.Fatalf("%d links: %v", found, err)
	}
}

// TestBrokenLinks plants links to nothing among others.
func TestBrokenLinks(t *testing.T) {
	const here = "https://github.com/traceflake/traceflake/blob/main/"
	text := "[a](#one), [b](two.md#a-file-ab_c), [c](two.md#twice-1), [d](../go.mod), " +
		"[e](https://example.org/#x), " + here + "docs/two.md#twice. "
	wrong := []string{"](#two)", "](two.md#code)", "](two.md#twice-2)", "](docs/two.md)",
		"](../doc/)"}
	root := fstest.MapFS{
		"go.mod": {},
		"docs/two.md": {Data: []byte("# A [file](x): `a.b_c`!\n```\n# Code\n```\n## Twice\n" +
			"## Twice\n")},
		"docs/one.md": {Data: []byte("# One\n")},
	}
	for _, link := range wrong {
		text += "[x" + link + " "
	}
	wrong = append(wrong, here[6:]+"docs/two.md#thrice")
	text += "runbook_url: " + here + "docs/two.md#thrice\n"
	if got := broken(root, "docs/one.md", text); !slices.Equal(got, wrong) {
		t.Errorf("links to nothing: %q, want %q", got, wrong)
	}
}

var (
	// A test that a page names, or with * several.
	namedTest = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w*\*?`)
	aTest     = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
)

// missing returns the tests that pages of a tree name, and that do not exist.
func missing(tree fs.FS) (names []string, err error) {
	var all strings.Builder
	err = walk(tree, func(name string, text []byte) error {
		switch {
		case strings.HasSuffix(name, "_test.go"):
			for _, m := range aTest.FindAllSubmatch(text, -1) {
				fmt.Fprintf(&all, " %s ", m[1])
			}
		case strings.HasSuffix(name, ".md"):
			names = append(names, namedTest.FindAllString(string(text), -1)...)
		}
		return nil
	})
	return slices.DeleteFunc(names, func(name string) bool {
		prefix, several := strings.CutSuffix(name, "*")
		return strings.Contains(all.String(), " "+prefix+" ") ||
			several && strings.Contains(all.String(), " "+prefix)
	}), err
}

// A page that names a test for a claim would otherwise go on after the test was removed.
func TestNamedTests(t *testing.T) {
	if names, err := missing(tree(t)); err != nil || len(names) > 0 {
		t.Errorf("pages name tests that do not exist: %q, %v", names, err)
	}
	planted := fstest.MapFS{
		"a_test.go": {Data: []byte("func TestAdopt(t *testing.T) {\nfunc FuzzLine(f *F) {")},
		"page.md":   {Data: []byte("`TestAdopt`, TestAdo*, TestAdo, FuzzLine, TestFuzz*")},
	}
	if names, _ := missing(planted); !slices.Equal(names, []string{"TestAdo", "TestFuzz*"}) {
		t.Errorf("missing tests: %q", names)
	}
}
