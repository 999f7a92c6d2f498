package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	inCode = regexp.MustCompile("(?s)```.*?```|`[^`]+`")
	// A call of the command, at the start of a line or after what a shell may have before it.
	ourCommand = regexp.MustCompile(`(?:^\s*(?:\$ )?|\$\(|[|&;{] )(traceflake (?:[a-z]|-).*)`)
	quoted     = regexp.MustCompile(`"[^"]*"`)
	// What ends a command in a shell, or stands for several: an operator, a comment, an ellipsis.
	shellEnd = regexp.MustCompile(`\\?[|;&<>#)…]|\.\.\.`)
)

// refused returns the reason why the command line would not accept a call, or nil. A call without
// arguments, such as a page has in a sentence, stands for one with them.
func refused(call string) error {
	root := newRoot(nil)
	root.InitDefaultCompletionCmd()
	cmd, args, err := root.Find(strings.Fields(call)[1:])
	if err == nil {
		err = cmd.ParseFlags(args)
	}
	if err == nil && len(cmd.Flags().Args()) > 0 {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	return err
}

// callsIn returns the calls of the command in the code of a page.
func callsIn(page string) (all []string) {
	for _, code := range inCode.FindAllString(page, -1) {
		code = strings.ReplaceAll(strings.Trim(code, "`"), "\\\n", " ")
		for line := range strings.Lines(code) {
			for _, m := range ourCommand.FindAllStringSubmatch(line, -1) {
				call := quoted.ReplaceAllString(strings.ReplaceAll(m[1], `"$@"`, ""), "x")
				if end := shellEnd.FindStringIndex(call); end != nil {
					call = call[:end[0]]
				}
				all = append(all, strings.Join(strings.Fields(call), " "))
			}
		}
	}
	return all
}

// Every call of the command in a page has commands, flags and a number of arguments that exist.
func TestPages(t *testing.T) {
	const root = "../../.."
	if _, err := os.Stat(filepath.Join(root, "go.work")); err != nil {
		t.Skip("the pages are not here: this is a copy of one module")
	}
	found := 0
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (d.Name()[0] == '.' || d.Name() == "node_modules"):
			return fs.SkipDir
		case !strings.HasSuffix(name, ".md") || name == "CHANGELOG.md":
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		for _, call := range callsIn(string(text)) {
			found++
			if err := refused(call); err != nil {
				t.Errorf("%s: %q: %v", name, call, err)
			}
		}
		return nil
	})
	if err != nil || found == 0 {
		t.Errorf("%d calls: %v", found, err)
	}
}

// TestPages finds calls that would fail.
func TestWrongPages(t *testing.T) {
	page := "`traceflake inspect` ```sh\ntraceflake doctor --jsonn | x\n$(traceflake gone now)\n" +
		"traceflake lease list --held # ok\ntraceflake lease lost\n```"
	var wrong []string
	for _, call := range callsIn(page) {
		if refused(call) != nil {
			wrong = append(wrong, call)
		}
	}
	want := "traceflake doctor --jsonn, traceflake gone now, traceflake lease lost"
	if got := strings.Join(wrong, ", "); got != want {
		t.Errorf("wrong calls: %s", got)
	}
}
