package cli

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	chgo "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/internal/vmclock"
	"github.com/traceflake/traceflake/setup"
)

func TestBadUsage(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"nope", `unknown command "nope" for "traceflake"; see traceflake --help`},
		{"inspct", `unknown command "inspct" for "traceflake"; did you mean inspect?`},
		{"ver", "did you mean new or verify or version?"},
		{"help foo", `unknown command "foo" for "traceflake"; see traceflake --help`},
		{"help lease rais", `unknown command "rais" for "traceflake lease"; did you mean raise?`},
		{"clickhouse create --dsn ftp://host/otel", "the address is invalid: want clickhouse://"},
		{"lease rais", `unknown command "rais" for "traceflake lease"; did you mean raise?`},
		{"new --nope", "unknown flag: --nope; see traceflake new --help"},
		{"new x", `["x"]: unexpected or missing arguments; usage: traceflake new`},
		{"new -n 0", "-n: 0 is less than 1"},
		{"new -n x", `--number: "x" is not a whole number`},
		{"new --span --at now", "--at is for trace IDs"},
		{"new --key x", "--key needs --deterministic and --at with a time"},
		{"new --at - --deterministic --key x", "--key needs --deterministic and --at with a time"},
		{"new --at - -n 2", "there is one ID for each line"},
		{"verify --max-age 1day x",
			`--max-age: "1day" is not a duration such as 90s, 10m, 1h30m or 30d`},
		{"verify --max-age 0 x", "--max-age must be positive"},
		{"verify x", "no secret: give --secret-file or set TRACEFLAKE_SECRET_FILE"},
		{"verify --secret-file /nonexistent x", "no such file"},
		{"verify -o table x", `--output: "table" is not one of text, json`},
		{"range now", `["now"]: unexpected or missing arguments; usage: traceflake range FROM TO`},
		{"range now now-1h", "is before FROM"},
		{"range soon now",
			`FROM: "soon" is not a time: want RFC 3339, a Unix time, "now" or an offset such as now-90m or now-7d`},
		{"range now soon", `TO: "soon" is not a time`},
		{"range now-1h now -o tempo", "--output tempo needs --trace ID"},
		{"range now-1h now --slack 1h", "--slack needs --trace ID"},
		{"range --trace 1950fb0f8880000086cdcca4ab608495 now-1h now",
			"unexpected or missing arguments; usage: traceflake range"},
		{"range --trace 1950fb0f8880000086cdcca4ab608495 --slack -1s",
			`--slack: "-1s" is not a duration`},
		{"range --trace xyz", `--trace: not an ID: "xyz" does not look like`},
		{"range --trace 000000000000000086cdcca4ab608495", "contains no time"},
		{"range now-1h now --secret-file x",
			"unknown flag: --secret-file; see traceflake range --help"},
		{"proxy", "unexpected or missing arguments; usage: traceflake proxy URL"},
		{"proxy tempo:3200", "URL: want the address of the server"},
		{"proxy http://user:hunter2@tempo:3200", "without a user or a query"},
		{"proxy http://tempo:3200?x=y", "without a user or a query"},
		{"proxy --timeout -1s http://x", "is not a duration"},
		{"proxy --backend zipkin http://x", `"zipkin" is not one of tempo, jaeger`},
		{"proxy --verify http://x", "--verify: no secret"},
		{"proxy --listen 256.0.0.1:1 http://x", "listen: "},
		{"clickhouse create", "no address: set --dsn"},
		{"clickhouse create --dsn clickhouse://u:hunter2@host:9x00/otel",
			"the address is invalid: want clickhouse://user:password@host:9000/database"},
		{"clickhouse create --dsn clickhouse://u:hunter2@127.0.0.1:1/otel", "connection refused"},
		{"clickhouse create --dry-run --table a`b", "table \"a`b\""},
		{"clickhouse create --dry-run --materialize", "--materialize needs --overlay or --logs"},
	} {
		r := command(t, "", strings.Fields(c.line)...)
		r.want(t, 2, "", c.want)
		if r.out != "" {
			t.Errorf("%s wrote %q", c.line, r.out)
		}
	}
	command(t, "", "verify", "--secret-file", write(t, "secret", secretA)).want(t, 2, "",
		"no IDs: give some")
	command(t, "", "inspect", "--secret-file", write(t, "secret", secretA+"x"), random).want(t, 2,
		"", "line 1 has 33 characters")
	t.Setenv(setup.TTLVar, "ten minutes")
	command(t, "", "new").want(t, 2, "", "TRACEFLAKE_TTL")
}

func TestHelp(t *testing.T) {
	// Without arguments, a command that only has subcommands prints its help.
	for _, args := range [][]string{nil, {"lease"}} {
		r := command(t, "", args...)
		r.want(t, 0, "Available Commands:", "")
		if help := command(t, "", append(args, "--help")...); help.out != r.out {
			t.Errorf("%q prints %q, --help %q", args, r.out, help.out)
		}
	}
	// The shell completes commands and the values of flags.
	command(t, "", cobra.ShellCompNoDescRequestCmd, "range", "-o", "").want(t, 0,
		"text\nsql\njson\n", "Completion ended")
	command(t, "", cobra.ShellCompNoDescRequestCmd, "lease", "r").want(t, 0, "raise\n",
		"Completion ended")
}

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
	dir, store := directory(t)
	defer closeStore(store)
	ids := command(t, "", "new", "-n", "2", "--store", dir).out
	traceparent := "traceparent: 00-" + lines(ids)[0] + "-00f067aa0ba902b7-01"
	none, _ := newServer(t, time.Now)
	documented := map[string]bool{}
	field := regexp.MustCompile(`"(\w+)":`)
	for _, c := range [][]string{
		{traceparent, "inspect", "--store", dir}, {random, "verify", "--store", dir},
		{"x", "verify", "--store", dir},
		{"", "range", "now-1h", "now"},
		{"", "range", "--trace", "1950fb0f8880000086cdcca4ab608495"},
		{"", "lease", "list", "--store", dir},
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
	documented["traceflake lease show"] = true // that of list
	documented["traceflake trace"] = true      // OTLP's: integration/collector
	for _, cmd := range commands(newRoot(nil)) {
		if cmd.Flags().Lookup("output") != nil && !documented[cmd.CommandPath()] {
			t.Errorf("%s: its JSON is not tested", cmd.CommandPath())
		}
	}
}

// An address without a port gets the default port.
func TestDefaultPort(t *testing.T) {
	for dsn, want := range map[string]string{
		"clickhouse://host/otel": "host:9000", "clickhouse://[::1]/otel": "[::1]:9000",
		"clickhouse://host/otel?secure=true": "host:9440",
		"http://host/otel":                   "host:8123",
		"https://host/otel?secure=true":      "host:8443", "clickhouse://host:1/otel": "host:1",
	} {
		o, err := chgo.ParseDSN(dsn)
		if err != nil {
			t.Fatal(err)
		}
		if got := withPort(o.Addr[0], o); got != want {
			t.Errorf("%s is %s, want %s", dsn, got, want)
		}
	}
}

// On a full disk nothing is lost silently.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no /dev/full")
	}
	defer full.Close()
	for _, args := range [][]string{{"new"}, {"new", "-n", "100000"}, {"range", "now", "now"},
		{"version"},
		{"inspect", "4bf92f3577b34da6a3ce929d0e0e4736"}, {"postgres"}} {
		var errOut bytes.Buffer
		if code := run(t.Context(), args, strings.NewReader(""), full, &errOut); code != 2 ||
			!strings.Contains(errOut.String(), "no space left") {
			t.Errorf("%q: code %d, %q", args, code, errOut.String())
		}
	}
}

// An ID is shown when it arrives, not when 64 KiB have.
func TestInspectAtOnce(t *testing.T) {
	in, feed := io.Pipe()
	shown, out := io.Pipe()
	ended := make(chan int, 1)
	go func() { ended <- run(t.Context(), []string{"inspect"}, in, out, io.Discard); out.Close() }()
	lines := bufio.NewScanner(shown)
	for range 3 {
		go func() { _, _ = io.WriteString(feed, random+"\n") }()
		for ok := false; !ok; ok = strings.Contains(lines.Text(), "128 bits") {
			if !lines.Scan() {
				t.Fatal("the output ended")
			}
		}
	}
	if err := feed.Close(); err != nil {
		t.Fatal(err)
	}
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, empty := range []string{"", "\n\n"} {
		command(t, empty, "inspect").want(t, 2, "", "no IDs: give some")
	}
}
