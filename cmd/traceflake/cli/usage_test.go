package cli

import (
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/internal/vmclock"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// Each command has examples in its help. The commands, flags and numbers of arguments in the
// examples are right.
func TestExamples(t *testing.T) {
	for _, cmd := range commands(newRoot(nil)) {
		if cmd.Example == "" || strings.Contains(cmd.UsageString(), "(default 0") {
			t.Errorf("%s: no example, or a zero default in its help", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Example) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), " | ")
			line, _, _ = strings.Cut(line, " <")
			line, _, _ = strings.Cut(line, " >")
			words := shellWords(line)
			if len(words) == 0 || words[0] != "traceflake" {
				t.Errorf("%s: example %q", cmd.CommandPath(), line)
				continue
			}
			sub, args, err := newRoot(nil).Find(words[1:])
			if err == nil {
				err = sub.ParseFlags(args)
			}
			if err == nil {
				err = sub.ValidateArgs(sub.Flags().Args())
			}
			if err != nil || !strings.HasPrefix(sub.CommandPath(), cmd.CommandPath()) {
				t.Errorf("%s: example %q: %v", cmd.CommandPath(), line, err)
			}
		}
	}
}

// The examples of JSON in the help of inspect have the kinds and the times of their IDs.
func TestHelpOfInspect(t *testing.T) {
	cmd, _, err := newRoot(nil).Find([]string{"inspect"})
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile(`"id":"(\w+)",\s*("kind":"[^"]*",\s*"time":"[^"]+")`)
	all := example.FindAllStringSubmatch(cmd.Long, -1)
	if len(all) != 3 {
		t.Errorf("%d examples in\n%s", len(all), cmd.Long)
	}
	for _, e := range all {
		want := strings.ReplaceAll(e[2], "\n", "")
		if strings.Contains(want, "Randflake") {
			continue // under a secret
		}
		command(t, "", "inspect", "-o", "json", e[1]).want(t, 0, want, "")
	}
}

// commands returns a command and all below it.
func commands(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		all = append(all, commands(sub)...)
	}
	return all
}

// shellWords splits a line at spaces outside of double quotes.
func shellWords(line string) (words []string) {
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}

// The version command shows how restores are detected on this machine, or why they are not.
func TestVersion(t *testing.T) {
	source, err := vmclock.System().Status()
	r := command(t, "", "version")
	r.want(t, 0, runtime.Version()+" "+runtime.GOOS+"/"+runtime.GOARCH+"\nvmclock: "+
		source.String(), "")
	if err != nil && !strings.Contains(r.out, vmclock.Device) {
		t.Errorf("%q lacks the reason for off", r.out)
	}
}

// The help of each command with -o has its JSON, with every field.
func TestJSONIsDocumented(t *testing.T) {
	dir := "file:" + filepath.Join(t.TempDir(), "leases")
	codec, err := stores.OwnSecret(opened(t, dir))(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	acquired(t, opened(t, dir))
	low, err := codec.Encode(randflake.Parts{Time: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	id, err := traceid.New(time.Now(), 0, low)
	if err != nil {
		t.Fatal(err)
	}
	traceparent := "traceparent: 00-" + id.String() + "-00f067aa0ba902b7-01"
	none, _ := newServer()
	server, _ := newServer()
	command(t, "", "lease", "create", "--store", server, "--secret-file",
		filepath.Join(t.TempDir(), "secret")).want(t, 0, something, "")
	documented := map[string]bool{}
	field := regexp.MustCompile(`"(\w+)":`)
	for _, c := range [][]string{
		{traceparent, "inspect", "--store", dir}, {random, "verify", "--store", dir},
		{"x", "verify", "--store", dir},
		{"", "range", "now-1h", "now"},
		{"", "range", "--trace", "1950fb0f8880000086cdcca4ab608495"},
		{"", "lease", "list", "--store", dir}, {"", "lease", "secret", "list", "--store", server},
		{"", "doctor", "--store", none, "--secret-file", "/nonexistent"},
	} {
		args := slices.Concat(c[1:], []string{"-o", "json"})
		cmd, _, err := newRoot(nil).Find(args)
		if err != nil {
			t.Fatal(err)
		}
		documented[cmd.CommandPath()] = true
		r := command(t, c[0], args...)
		fields := field.FindAllString(r.out, -1)
		if len(fields) == 0 {
			t.Errorf("%q printed no JSON: %+v", args, r)
		}
		for _, f := range fields {
			if !strings.Contains(cmd.Long, f) {
				t.Errorf("%s: the help lacks %s", cmd.CommandPath(), f)
			}
		}
	}
	documented["traceflake trace"] = true // the table's columns: integration/collector
	for _, cmd := range commands(newRoot(nil)) {
		if cmd.Flags().Lookup("output") != nil && !documented[cmd.CommandPath()] {
			t.Errorf("%s: its JSON is not tested", cmd.CommandPath())
		}
	}
}
