package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/internal/vmclock"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/setup"
)

// Without arguments, a command that only has subcommands prints its help.
func TestHelpWithoutArguments(t *testing.T) {
	for _, args := range [][]string{nil, {"lease"}, {"sql"}} {
		r := command(t, "", args...)
		r.want(t, 0, "Available Commands:", "")
		if help := command(t, "", append(args, "--help")...); help.out != r.out {
			t.Errorf("%q prints %q, --help %q", args, r.out, help.out)
		}
	}
}

// Each command has examples in its help. The commands, flags and numbers of arguments in the
// examples are right.
func TestExamples(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if name := cmd.Name(); name == "help" || name == "completion" {
			return
		}
		if cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
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
			sub, args, err := newRoot().Find(words[1:])
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
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRoot())
	command(t, "", "range", "--help").want(t, 0, "now-1h now", "")
	command(t, "", "range", "now-1h", "now").want(t, 0, something, "")
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

func TestVersion(t *testing.T) {
	r := command(t, "", "version")
	r.want(t, 0, "traceflake ", "")
	if !strings.Contains(r.out, "go1.") || !strings.Contains(r.out, "/") {
		t.Errorf("%q lacks the Go version or the platform", r.out)
	}
}

// The version command shows how restores are detected on this machine, or why they are not.
func TestVersionShowsVMClock(t *testing.T) {
	r := command(t, "", "version")
	source, err := vmclock.System().Status()
	if want := "\nvmclock: " + source.String(); !strings.Contains(r.out, want) {
		t.Errorf("%q does not contain %q", r.out, want)
	}
	if err != nil && !strings.Contains(r.out, vmclock.Device) {
		t.Errorf("%q lacks the reason for off", r.out)
	}
	if runtime.GOOS != "linux" {
		return // only Linux has the page
	}
	page := make([]byte, 4096)
	copy(page, "VCLK\x00\x10\x00\x00\x01")
	page[25] = 1 // the page has a generation counter
	path := filepath.Join(t.TempDir(), "vmclock0")
	if err := os.WriteFile(path, page, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := vmclock.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := machine(c); got != "generation_counter" {
		t.Errorf("%q, want generation_counter", got)
	}
}

// The shell completes values of flags, and completes files only where files are expected.
func TestCompletion(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"inspect", "-o", ""}, []string{"table", "json"}},
		{[]string{"verify", "--output", ""}, []string{"text", "json"}},
		{[]string{"verify", "--max-age", ""}, []string{"24h"}},
		{[]string{"range", "-o", ""}, []string{"text", "sql", "json"}},
		{[]string{"range", ""}, []string{"now-1h"}},
		{[]string{"lease", "list", "-o", ""}, []string{"table", "json"}},
		{[]string{"lease", "list", "--store", ""}, []string{"bolt:", "postgres://", "etcd://", "k8s://", "s3://"}},
		{[]string{"new", "--store", ""}, []string{"bolt:"}},
		{[]string{"backfill", "--format", ""}, []string{"ndjson", "csv"}},
		{[]string{"backfill", "--time-format", ""}, []string{"auto"}},
		{[]string{"lease", "r"}, []string{"raise"}},
	} {
		r := command(t, "", append([]string{cobra.ShellCompNoDescRequestCmd}, c.args...)...)
		for _, want := range c.want {
			if !strings.Contains("\n"+r.out, "\n"+want+"\n") {
				t.Errorf("%q completes to %q, want %s", c.args, r.out, want)
			}
		}
	}
}

// A raise to a time that must be a mistake is refused; otherwise it would end a fleet's leases for
// years.
func TestRaise(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases.db")
	t.Setenv(setup.StoreVar, "bolt:"+path)
	s, err := driver.Open(t.Context(), "bolt:"+path, driver.NodeRange{})
	if err != nil {
		t.Fatal(err)
	}
	holder := lease.NewNonce()
	if _, err := s.Acquire(t.Context(), lease.Request{Nonce: holder, Now: time.Now(), TTL: 5 * time.Minute, Owner: "checkout-7"}); err != nil {
		t.Fatal(err)
	}
	file := func() string {
		t.Helper()
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	before := file()
	command(t, "", "lease", "raise", "2056-01-01").want(t, 2, "", "until then no process would get a lease")
	command(t, "", "lease", "raise", "now+24h2m").want(t, 2, "", "at most now+24h1m0s, or --force")
	command(t, "", "lease", "raise", "now-1m").want(t, 2, "", "1m0s ago")
	command(t, "", "lease", "raise", "2056-01-01", "--dry-run").want(t, 2, "", "--force")
	until := time.Now().Add(time.Hour).Truncate(time.Second).UTC().Format(time.RFC3339)
	r := command(t, "", "lease", "raise", until, "--dry-run")
	r.want(t, 0, "nothing before "+until+" would be granted", "")
	r.want(t, 0, " ever granted; 0 blocks are already unavailable until later", "")
	r.want(t, 0, "1 lease held now", "")
	r.want(t, 0, holder, "")
	command(t, "", "lease", "list", "-o", "json").want(t, 0, `"holder":"`+holder+`","owner":"checkout-7"`, "")
	if file() != before {
		t.Error("a command that only reads has written to the file")
	}

	command(t, "", "lease", "raise", until).want(t, 0, "nothing before "+until+" is granted any more: 16384 blocks raised", "")
	if file() == before {
		t.Error("the raise wrote nothing")
	}
	command(t, "", "lease", "raise", until, "-n").want(t, 0, " ever granted; 0 blocks are already unavailable until later", "")
	// The store keeps whole seconds, and the stored time is reported.
	half := time.Now().Add(2 * time.Hour).Truncate(time.Second).Add(500 * time.Millisecond).UTC()
	next := half.Add(500 * time.Millisecond).Format(time.RFC3339)
	command(t, "", "lease", "raise", half.Format(time.RFC3339Nano)).want(t, 0, "nothing before "+next+" is granted", "")
	// A lower time changes nothing, and the stored time is reported.
	command(t, "", "lease", "raise", until).want(t, 0, "nothing before "+next+" is granted", "")
	command(t, "", "lease", "raise", "2030-01-01", "--force").want(t, 0, "nothing before 2030-01-01T00:00:00Z is granted", "")
}

// IDs made under a store's own secret are decoded and verified with the store.
func TestStoreSecret(t *testing.T) {
	store, other := "bolt:"+filepath.Join(t.TempDir(), "a.db"), "bolt:"+filepath.Join(t.TempDir(), "b.db")
	id := strings.TrimSpace(command(t, "", "new", "--store", store).out)
	command(t, "", "new", "--store", other).want(t, 0, something, "")

	command(t, "", "inspect", "--store", store, id).want(t, 0, "halves agree", "")
	command(t, "", "inspect", "--store", other, id).want(t, 0, "halves disagree", "")
	command(t, "", "verify", "--store", store, id).want(t, 0, id+"\tverified\n", "")
	command(t, "", "verify", "--store", other, id).want(t, 1, id+"\tnot verified\thalves: ", "")
	// A secret file takes precedence, and then no store is needed.
	secret := write(t, "secret", secretA)
	command(t, "", "verify", "--store", store, "--secret-file", secret, id).want(t, 1, "not verified", "")
	dead := "postgres://user:hunter2@127.0.0.1:1/db"
	command(t, "", "verify", "--store", dead, "--secret-file", secret, id).want(t, 1, "not verified", "")
	command(t, "", "verify", "--store", dead, id).want(t, 2, "", "this store has no secret of its own; give --secret-file")
	command(t, "", "verify", "--store", "bolt:/nonexistent/leases.db", id).want(t, 2, "", "file does not exist")
}

func TestVerifyJSON(t *testing.T) {
	secret := write(t, "secret", secretA)
	id := strings.TrimSpace(command(t, "", "new", "--secret-file", secret).out)
	r := command(t, id+"\n\nb3: 0\ntraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\n",
		"verify", "--secret-file", secret, "-o", "json")
	r.want(t, 1, something, "line 3: ")
	var got []verdict
	for dec := json.NewDecoder(strings.NewReader(r.out)); dec.More(); {
		var v verdict
		if err := dec.Decode(&v); err != nil {
			t.Fatal(err)
		}
		got = append(got, v)
	}
	if len(got) != 3 || got[0] != (verdict{Line: 1, ID: id, Verified: true}) ||
		got[1].Line != 3 || got[1].Verified || !strings.Contains(got[1].Error, "no trace ID") ||
		got[2].Line != 4 || got[2].ID != "4bf92f3577b34da6a3ce929d0e0e4736" || !strings.HasPrefix(got[2].Reason, "future: ") {
		t.Errorf("%+v", got)
	}
	command(t, "", "verify", "--secret-file", secret, "-o", "json", id).want(t, 0, `{"id":"`+id+`","verified":true}`+"\n", "")
}

// writes counts the calls of Write.
type writes struct {
	bytes.Buffer
	n int
}

func (w *writes) Write(p []byte) (int, error) {
	w.n++
	return w.Buffer.Write(p)
}

// Output to a pipe or a file takes at most one write per 32 KiB.
func TestOutputIsBuffered(t *testing.T) {
	secret := write(t, "secret", secretA)
	ids := command(t, "", "new", "-n", "20000", "--secret-file", secret).out
	for _, args := range [][]string{
		{"inspect"}, {"inspect", "-o", "json"}, {"verify"}, {"verify", "-o", "json"}, {"new", "-n", "20000"},
	} {
		var out, errOut writes
		code := run(t.Context(), append(args, "--secret-file", secret), strings.NewReader(ids), &out, &errOut)
		if most := out.Len()/(32<<10) + 1; code != 0 || out.n > most || bytes.Count(out.Bytes(), []byte("\n")) < 20000 {
			t.Errorf("%q: code %d, %d writes for %d bytes, want at most %d", args, code, out.n, out.Len(), most)
		}
	}
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGzip(t *testing.T) {
	secret := write(t, "secret", secretA)
	ids := command(t, "", "new", "-n", "1000", "--secret-file", secret).out
	plain := command(t, ids+ids, "verify", "--secret-file", secret)
	// Two members, as from `cat a.gz b.gz`.
	if got := command(t, zipped(t, ids)+zipped(t, ids), "verify", "--secret-file", secret); got != plain {
		t.Errorf("code %d, %d bytes, want %d, %d", got.code, len(got.out), plain.code, len(plain.out))
	}
	command(t, zipped(t, ids), "inspect", "--secret-file", secret).want(t, 0, "halves agree", "")
	command(t, zipped(t, ids)[:2000], "verify", "--secret-file", secret).want(t, 2, "\tverified\n", "reading: unexpected EOF")
	command(t, zipped(t, ids)[:5], "verify", "--secret-file", secret).want(t, 2, "", "reading: unexpected EOF")
	broken := []byte(zipped(t, ids))
	broken[len(broken)-6] ^= 1 // the checksum
	command(t, string(broken), "verify", "--secret-file", secret).want(t, 2, something, "reading: gzip: invalid checksum")
	command(t, "\x1f\x8b", "inspect").want(t, 1, "", "not an ID")

	path := write(t, "old.csv.gz", zipped(t, "ts,k\n1704164645,a\n"))
	command(t, "", "backfill", "--time", "ts", path, "--secret-file", secret, "--deterministic").want(t, 0, "ts,k,trace_id\n1704164645,a,0eb4dcf8", "1 got an ID")
	command(t, zipped(t, `{"ts":1704164645}`), "backfill", "--time", "ts", "--secret-file", secret, "--deterministic").want(t, 0, `"trace_id":"0eb4dcf8`, "1 got an ID")
	path = write(t, "cut.csv.gz", zipped(t, strings.Repeat("ts,k\n1704164645,a\n", 1000))[:40])
	command(t, "", "backfill", "--time", "ts", path, "--secret-file", secret, "--deterministic").want(t, 2, something, "unexpected EOF")
}

// Binary input is reported line by line, and IDs in it are found.
func TestBinaryInput(t *testing.T) {
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	r := command(t, "\x00\x01\xff\xfe\n"+id+"\n\x7fELF\x02\x01\x01", "inspect")
	r.want(t, 1, id, "line 1: not an ID")
	r.want(t, 1, id, "line 3: not an ID")
	if strings.ContainsAny(r.errOut, "\x00\x01") || strings.Contains(r.errOut, "\xff") {
		t.Errorf("raw bytes in %q", r.errOut)
	}
}

// On a full disk nothing is lost silently.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no /dev/full")
	}
	defer full.Close()
	for _, args := range [][]string{{"new"}, {"new", "-n", "100000"}, {"range", "now", "now"}, {"version"},
		{"inspect", "4bf92f3577b34da6a3ce929d0e0e4736"}, {"sql", "postgres"}, {"keygen"}} {
		var errOut bytes.Buffer
		if code := run(t.Context(), args, strings.NewReader(""), full, &errOut); code != 2 || !strings.Contains(errOut.String(), "no space left") {
			t.Errorf("%q: code %d, %q", args, code, errOut.String())
		}
	}
}

// If the reader closes the pipe, the program ends instead of running forever.
func TestClosedPipe(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the program")
	}
	program := filepath.Join(t.TempDir(), "traceflake")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), program, "new", "-n", "2000000000")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if _, err := r.Read(make([]byte, 10)); err != nil {
		t.Error(err)
	}
	r.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("it keeps running")
		_ = cmd.Process.Kill()
	}
}
