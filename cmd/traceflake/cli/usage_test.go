package cli

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Each command has examples in its help. The commands, flags and numbers of arguments in the
// examples are right.
func TestExamples(t *testing.T) {
	for _, cmd := range commands(newRoot(nil)) {
		usage := cmd.UsageString()
		if cmd.Example == "" || strings.Contains(usage, "(default 0") ||
			strings.Contains(usage, "[=") {
			t.Errorf("%s: no example, or a zero default or [=true|false] in its help",
				cmd.CommandPath())
		}
		calls := callsIn("```\n" + cmd.Example + "\n```")
		if n := len(lines(cmd.Example)); len(calls) != n {
			t.Errorf("%s: %d of %d examples are calls", cmd.CommandPath(), len(calls), n)
		}
		for _, call := range calls {
			if err := refused(call); err != nil || !strings.HasPrefix(call, cmd.CommandPath()) {
				t.Errorf("%s: example %q: %v", cmd.CommandPath(), call, err)
			}
		}
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

// The help of each command with -o has its JSON, with every field.
func TestJSONIsDocumented(t *testing.T) {
	storeInUse(t)
	file := write(t, "keys", command(t, "", "lease", "keys").out)
	id := strings.TrimSpace(idsUnder(func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}, file, 1))
	// Those that need ClickHouse are tested in integration.
	documented := map[string]bool{"traceflake trace": true, "traceflake clickhouse status": true}
	field := regexp.MustCompile(`"(\w+)":`)
	input := "traceparent: 00-" + id + "-00f067aa0ba902b7-01\n" + random + "\nx\n"
	for _, c := range []string{"inspect", "inspect --verify", "lease list",
		"doctor --secret-file /nonexistent"} {
		args := strings.Fields(c + " -o json")
		cmd, _, err := newRoot(nil).Find(args)
		if err != nil {
			t.Fatal(err)
		}
		documented[cmd.CommandPath()] = true
		r := command(t, input, args...)
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
	for _, cmd := range commands(newRoot(nil)) {
		if cmd.Flags().Lookup("output") != nil && !documented[cmd.CommandPath()] {
			t.Errorf("%s: its JSON is not tested", cmd.CommandPath())
		}
	}
}
