package rooms

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

var (
	// In the code of a page: a target of make, a job of CI, and a path of this repository.
	inCode   = regexp.MustCompile("(?s)```.*?```|`[^`]+`")
	makes    = regexp.MustCompile(`\bmake ([a-z][a-z0-9-]*)`)
	aTarget  = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
	jobs     = regexp.MustCompile(`\.ci/run ([a-z]+)`)
	aJob     = regexp.MustCompile(`(?m)^([a-z]+)\(\) \{$`)
	ourPaths = regexp.MustCompile(`(?:^|\s)\./([a-z]\w*/[\w./-]*\w)`)
)

// unknown returns the targets, jobs and paths in the code of pages that do not exist. A path is
// relative to the repository or to the page.
func unknown(tree fs.FS) (all []string, err error) {
	makefile, err := fs.ReadFile(tree, "Makefile")
	if err != nil {
		return nil, err
	}
	ci, err := fs.ReadFile(tree, ".ci/run")
	if err != nil {
		return nil, err
	}
	err = walk(tree, func(name string, text []byte) error {
		if !strings.HasSuffix(name, ".md") {
			return nil
		}
		here := func(file string) bool {
			return exists(tree, file) || exists(tree, path.Join(path.Dir(name), file))
		}
		for _, code := range inCode.FindAllString(string(text), -1) {
			for _, kind := range []struct {
				prefix string
				named  *regexp.Regexp
				known  func(string) bool
			}{
				{"make ", makes, listed(aTarget, makefile)},
				{".ci/run ", jobs, listed(aJob, ci)},
				{"./", ourPaths, here},
			} {
				for _, m := range kind.named.FindAllStringSubmatch(code, -1) {
					if !kind.known(m[1]) {
						all = append(all, name+": "+kind.prefix+m[1])
					}
				}
			}
		}
		return nil
	})
	return all, err
}

// listed returns whether a file has a name where an expression finds one.
func listed(where *regexp.Regexp, file []byte) func(string) bool {
	return func(name string) bool {
		return slices.ContainsFunc(where.FindAllSubmatch(file, -1),
			func(m [][]byte) bool { return string(m[1]) == name })
	}
}

func exists(tree fs.FS, name string) bool {
	_, err := fs.Stat(tree, name)
	return err == nil
}

// A page that contains a command would otherwise go on after its target or its folder was removed.
// The commands of traceflake itself are checked by the tests of cmd/traceflake/cli.
func TestCommands(t *testing.T) {
	if all, err := unknown(tree(t)); err != nil || len(all) > 0 {
		t.Errorf("pages have commands that do not exist: %q, %v", all, err)
	}
	planted := fstest.MapFS{
		"Makefile": {Data: []byte("test: a\n")},
		".ci/run":  {Data: []byte("lint() {\n")},
		"a/b/c.go": {},
		"page.md": {Data: []byte("`make test`, `make tests`, `go test ./a/b ./a/c`; make sense, " +
			"`.ci/run lint`, `.ci/run lent`, `.ci/run`")},
	}
	want := "page.md: make tests page.md: ./a/c page.md: .ci/run lent"
	if all, _ := unknown(planted); strings.Join(all, " ") != want {
		t.Errorf("unknown commands: %q", all)
	}
}
