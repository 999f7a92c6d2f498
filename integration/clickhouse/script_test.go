package clickhouse_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// script is a session of an operator, who runs SQL and the command.
type script struct {
	*engine
	spans        []span
	program, dsn string
	output       string // of the last command
}

// TestScripts runs the scripts in testdata/scripts. They consist of cases, each with an empty
// database without functions, and these of steps, after empty lines:
//
//	-- NAME   begins a case; the lines that follow say what it shows
//	> SQL     runs statements. Lines that begin with "=" are the rows of the last one; a line
//	          that begins with "! " is a part of the error of one of them
//	$ ARGS    runs traceflake, which must succeed. The lines that follow are a part of what it
//	          prints, and lines that begin with "~ " are not
//	! ARGS    the same, but it must fail and change nothing
//	? TEXT    adopt prepare fails, and status prints the same reason
//	@ NEEDS   goes on with this version of ClickHouse alone, or with testdata/users.xml
//
// In SQL and ARGS {exporter} creates the table of the Collector's exporter, {lookup} its lookup
// table and the view, {spans} stores few spans, one of which is of {trace}, {output} is the SQL
// that the last command printed, {mutated} waits for mutations, {# HEADING} is the SQL of the page,
// and {compared} its comparison of a copy.
func TestScripts(t *testing.T) {
	program := child.Build(t, child.Traceflake)
	e := newEngine(t)
	dsn := e.through(func(statement string) string { return oneServer(settled.Replace(statement)) })
	files, err := filepath.Glob("testdata/scripts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts:", err)
	}
	for _, file := range files {
		for _, text := range strings.Split(read(file), "\n\n-- ")[1:] {
			steps := strings.Split(text, "\n\n")
			name, _, _ := strings.Cut(steps[0], "\n")
			t.Run(name, func(t *testing.T) {
				s := &script{&engine{e.Engine, t, e.db}, few(), program, dsn, ""}
				s.empty()
				for _, name := range s.column("SELECT name FROM system.functions WHERE origin = " +
					"'SQLUserDefined'") {
					s.exec("DROP FUNCTION " + name)
				}
				for _, step := range steps[1:] {
					if s.step(step[:2], step[2:]); t.Failed() {
						t.Fatalf("in the step\n%s", step)
					}
				}
			})
		}
	}
}

// step runs a step of a kind.
func (s *script) step(kind, text string) {
	s.t.Helper()
	lines := strings.Split(text, "\n")
	switch kind {
	case "> ":
		s.sql(lines)
	case "$ ", "! ":
		before := s.snapshot()
		if ok := s.command(lines[0]); ok != (kind == "$ ") {
			s.t.Errorf("%q succeeds: %t", lines[0], ok)
		}
		s.printed(lines[1:])
		if after := s.snapshot(); kind == "! " && after != before {
			s.t.Errorf("changed from %s to %s", before, after)
		}
	case "@ ":
		served := os.Getenv("TRACEFLAKETEST_CLICKHOUSE_DSN") != ""
		version, not := strings.CutPrefix(text, "not ")
		if text == "users.xml" && served || text != "users.xml" &&
			strings.HasPrefix(s.one("SELECT version()"), version) == not {
			s.t.Skip("it needs", text)
		}
	case "? ":
		s.step("! ", "clickhouse adopt prepare\n"+text)
		s.command("clickhouse status")
		s.printed(lines)
	default:
		s.t.Errorf("unknown kind %q", kind)
	}
}

// sql runs statements, followed by the rows of the last one or the error of one of them.
func (s *script) sql(lines []string) {
	s.t.Helper()
	var sql, want, got, failure string
	checked := false
	for _, line := range lines {
		if row, is := strings.CutPrefix(line, "="); is {
			want, checked = want+strings.TrimPrefix(row, " ")+"\n", true
		} else if text, is := strings.CutPrefix(line, "! "); is {
			failure = text
		} else {
			sql += line + "\n"
		}
	}
	for sql := range strings.SplitSeq(strings.TrimRight(s.expand(sql), ";\n"), ";\n") {
		result, err := s.Query(s.t.Context(), settled.Replace(sql))
		if err != nil {
			if failure == "" || !strings.Contains(err.Error(), failure) {
				s.t.Error(err)
			}
			return
		}
		got = ""
		for _, row := range result.Rows {
			got += strings.Join(row, " ") + "\n"
		}
	}
	if failure != "" || checked && got != strings.TrimPrefix(want, "\n") {
		s.t.Errorf("got\n%s%swant\n%s", got, failure, want)
	}
}

// command runs the command, and reports whether it succeeds.
func (s *script) command(args string) bool {
	out, err := patiently(s.program, "TRACEFLAKE_CLICKHOUSE_DSN="+s.dsn,
		strings.Fields(s.expand(args))...)
	s.output = varies.ReplaceAllString(out, "N")
	return err == nil
}

// patiently runs the command, and again if the server was slower than the command waits, as on a
// machine under load.
func patiently(program, env string, args ...string) (out string, err error) {
	for range 20 {
		cmd := exec.Command(program, args...)
		cmd.Env = append(os.Environ(), env)
		var text []byte
		text, err = cmd.CombinedOutput()
		if out = string(text); !strings.Contains(out, "no response within") {
			break
		}
	}
	return out, err
}

// printed checks what the last command has printed.
func (s *script) printed(lines []string) {
	s.t.Helper()
	var want []string
	for _, line := range lines {
		if not, is := strings.CutPrefix(line, "~ "); !is {
			want = append(want, s.expand(line))
		} else if strings.Contains(s.output, not) {
			s.t.Errorf("printed is %s:\n%s", not, s.output)
		}
	}
	if text := strings.Join(want, "\n"); !strings.Contains(s.output, text) {
		s.t.Errorf("printed is\n%s\nwithout\n%s", s.output, text)
	}
}

var (
	heading = regexp.MustCompile(`\{(?:#|A \*)[^}]*\}`)
	// varies matches the parts that differ between runs.
	varies = regexp.MustCompile(`\d+\.\d (MiB|days)`)
	// comments are not run.
	comments = regexp.MustCompile(`(?m)^--.*\n`)
)

// expand fills in the placeholders of a step.
func (s *script) expand(text string) string {
	exporter := collectorTable("otel_traces")
	_, printed, found := strings.Cut(s.output, ":\n")
	if !found {
		printed = s.output
	}
	compared := recipe("### Move a day", "otel_traces")[2]
	const mutated = "ALTER TABLE otel_traces DELETE WHERE 0 SETTINGS mutations_sync = 2"
	text = strings.NewReplacer("{exporter}", exporter[0],
		"{lookup}", exporter[1]+";\n"+exporter[2], "{mutated}", mutated,
		"{spans}", insertion("otel_traces", s.spans), "{trace}", s.spans[0].trace,
		"{output}", comments.ReplaceAllString(printed, ""),
		"{compared}", strings.ReplaceAll(compared, "2026-11-20", "2026-10-14"),
		"{db}", s.Database(), "{dsn}", s.dsn).Replace(text)
	return heading.ReplaceAllStringFunc(text, func(h string) string {
		return strings.Join(recipe(h[1:len(h)-1], "otel_traces"), ";\n")
	})
}
