package repocheck

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

// What files define by name, and how pages write it.
var definitions = []struct {
	file   string // its end
	is     *regexp.Regexp
	prefix string
}{
	{"Makefile", regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`), "make "},
	{".ci/run", regexp.MustCompile(`(?m)^([a-z]+)\(\) \{$`), ".ci/run "},
	{"_test.go", regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`), ""},
	{".go", regexp.MustCompile(`\b(TRACEFLAKE(?:TEST)?_\w+)`), ""}, // variables
}

var (
	// In the code of a page: what is run, and a path of the repository or beside the page.
	inCode = regexp.MustCompile("(?s)```.*?```|`[^`]+`")
	run    = regexp.MustCompile(`\bmake [a-z][a-z0-9-]*|\.ci/run [a-z]+|\bTRACEFLAKE[A-Z]*_\w+`)
	ours   = regexp.MustCompile(`(?:^|\s)\./([a-z]\w*/[\w./-]*\w)`)
	// In a page: a test, or with * several, and a link to a file or a heading.
	named    = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w*\*?`)
	relative = regexp.MustCompile(`\]\(([^)#:\s]*)(?:#([^)\s]*))?\)`)
	// Anywhere: such a link by its address.
	address = regexp.MustCompile(
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

// leads reports whether a file or folder of a tree exists, and if it is a page its heading too.
func leads(tree fs.FS, file, anchor string) bool {
	page, err := fs.ReadFile(tree, file)
	if err != nil {
		_, err = fs.Stat(tree, file) // a folder
	}
	return err == nil && (!strings.HasSuffix(file, ".md") || anchor == "" ||
		slices.Contains(anchors(string(page)), anchor))
}

// missing returns what the files of a tree mention and what does not exist: tests, commands, paths
// and links of pages, and addresses of this repository's files anywhere.
func missing(tree fs.FS) (all []string, err error) {
	known := " "
	define := func(name string, text []byte) error {
		for _, d := range definitions {
			if strings.HasSuffix(name, d.file) {
				for _, m := range d.is.FindAllSubmatch(text, -1) {
					known += d.prefix + string(m[1]) + " \n "
				}
			}
		}
		return nil
	}
	ci, err := fs.ReadFile(tree, ".ci/run") // which walk passes over
	if err != nil {
		return nil, err
	}
	_ = define(".ci/run", ci)
	if err := walk(tree, define); err != nil {
		return nil, err
	}
	err = walk(tree, func(name string, text []byte) error {
		check := func(what string, exists bool) {
			if !exists {
				all = append(all, name+": "+what)
			}
		}
		for _, m := range address.FindAllStringSubmatch(string(text), -1) {
			check(m[0], leads(tree, path.Clean(m[1]), m[2]))
		}
		if !strings.HasSuffix(name, ".md") {
			return nil
		}
		here := path.Dir(name)
		for _, m := range relative.FindAllStringSubmatch(string(text), -1) {
			file := name
			if m[1] != "" {
				file = path.Join(here, m[1])
			}
			check(m[0], leads(tree, file, m[2]))
		}
		for _, test := range named.FindAllString(string(text), -1) {
			prefix, several := strings.CutSuffix(test, "*")
			check(test, strings.Contains(known, " "+prefix+" ") ||
				several && strings.Contains(known, " "+prefix))
		}
		for _, code := range inCode.FindAllString(string(text), -1) {
			for _, command := range run.FindAllString(code, -1) {
				check(command, strings.Contains(known, " "+command+" "))
			}
			for _, m := range ours.FindAllStringSubmatch(code, -1) {
				check("./"+m[1], leads(tree, m[1], "") || leads(tree, path.Join(here, m[1]), ""))
			}
		}
		return nil
	})
	return all, err
}

// Pages would otherwise mention what was removed. The commands of traceflake itself are checked by
// the tests of cmd/traceflake/cli.
func TestPages(t *testing.T) {
	all, err := missing(tree(t))
	for _, what := range all {
		t.Errorf("it does not exist: %s", what)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestWrongPages plants what does not exist among what does.
func TestWrongPages(t *testing.T) {
	const here = "https://github.com/traceflake/traceflake/blob/main/"
	text := "[a](#one), [b](two.md#a-file-ab_c), [c](two.md#twice-1), [d](../go.mod), " +
		"[e](https://example.org/#x), " + here + "docs/two.md#twice; make sense, " +
		"`make test`, `TRACEFLAKE_TTL=1h go test ./a/b`, `.ci/run lint`, `.ci/run`, `TestAdopt`, " +
		"TestAdo*, FuzzLine"
	all := []string{here[6:] + "docs/two.md#thrice", "](#two)", "](two.md#code)",
		"](two.md#twice-2)", "](docs/two.md)", "](../doc/)", "TestAdo", "TestFuzz*", "make tests",
		".ci/run lent", "TRACEFLAKE_TLT", "./a/c"}
	root := fstest.MapFS{
		"go.mod":    {},
		"Makefile":  {Data: []byte("test: a\n")},
		".ci/run":   {Data: []byte("lint() {\n")},
		"a/b/c.go":  {Data: []byte(`Getenv("TRACEFLAKE_TTL")`)},
		"a_test.go": {Data: []byte("func TestAdopt(t *testing.T) {\nfunc FuzzLine(f *F) {")},
		"docs/two.md": {Data: []byte("# A [file](x): `a.b_c`!\n```\n# Code\n```\n## Twice\n" +
			"## Twice\n")},
		"run.yaml": {Data: []byte("runbook_url: https:" + all[0] + "\n")},
	}
	var want []string
	for i, what := range all {
		if i > 0 {
			text += ", `see " + what + "`"
			want = append(want, "docs/one.md: "+what)
		}
	}
	root["docs/one.md"] = &fstest.MapFile{Data: []byte("# One\n" + text + "\n")}
	want = append(want, "docs/two.md: ](x)", "run.yaml: "+all[0])
	if got, err := missing(root); err != nil || !slices.Equal(got, want) {
		t.Errorf("does not exist: %q, %v\nwant %q", got, err, want)
	}
}
