package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/setup"
	"github.com/traceflake/traceflake/traceid"
)

const (
	secretA = "dffd6021bb2bd5b0af676290809ec3a5"
	secretB = "00112233445566778899aabbccddeeff"
)

// result is what a command did.
type result struct {
	code        int
	out, errOut string
}

// command runs the command in this process. Only the variables that the test sets after clearEnv
// are set. No secret may ever appear in the output.
func command(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	r := result{code: run(t.Context(), args, strings.NewReader(stdin), &out, &errOut)}
	r.out, r.errOut = out.String(), errOut.String()
	for _, secret := range []string{secretA, secretB, "hunter2"} {
		if strings.Contains(strings.ToLower(r.out+r.errOut), secret) {
			t.Errorf("%q shows a secret:\n%s%s", args, r.out, r.errOut)
		}
	}
	return r
}

// something is any output.
const something = ""

// want checks the code and the texts. If errOut is empty, no error may be printed.
func (r result) want(t *testing.T, code int, out, errOut string) {
	t.Helper()
	if r.code != code {
		t.Errorf("code %d, want %d", r.code, code)
	}
	if !strings.Contains(r.out, out) {
		t.Errorf("out %q, want %q", r.out, out)
	}
	if !strings.Contains(r.errOut, errOut) || errOut == "" && r.errOut != "" {
		t.Errorf("stderr %q, want %q", r.errOut, errOut)
	}
}

func TestMain(m *testing.M) {
	for _, name := range []string{setup.StoreVar, setup.SecretFileVar, setup.NodesVar, setup.BlockSizeVar, setup.TTLVar, setup.MaxBlocksVar} {
		if err := os.Unsetenv(name); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func lines(s string) []string { return strings.Split(strings.TrimSuffix(s, "\n"), "\n") }

func traceID(t *testing.T, s string) trace.TraceID {
	t.Helper()
	id, err := trace.TraceIDFromHex(s)
	if err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	return id
}

func keyring(t *testing.T, path string) *randflake.Keyring {
	t.Helper()
	k, err := setup.LoadKeyring(path)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

const byChance = "unique by chance only"

func TestNewVerifyInspect(t *testing.T) {
	secret := write(t, "secret", secretA)
	r := command(t, "", "new", "-n", "3", "--secret-file", secret)
	r.want(t, 0, something, byChance)
	ids := lines(r.out)
	if len(ids) != 3 || ids[0] >= ids[1] || ids[1] >= ids[2] {
		t.Fatalf("IDs %q", ids)
	}
	// With another secret, from the environment, as arguments, with a header.
	command(t, r.out, "verify", "--secret-file", secret).want(t, 0, ids[2]+"\tverified\n", "")
	t.Setenv(setup.SecretFileVar, secret)
	command(t, "", append([]string{"verify"}, ids...)...).want(t, 0, ids[0]+"\tverified\n", "")
	command(t, "traceparent: 00-"+ids[0]+"-00f067aa0ba902b7-01\n", "verify", "-").want(t, 0, ids[0]+"\tverified\n", "")
	if r := command(t, "", "verify", "-q", ids[0]); r != (result{}) {
		t.Errorf("quiet: %+v", r)
	}
	command(t, r.out, "verify", "--secret-file", write(t, "other", secretB)).want(t, 1, ids[0]+"\tnot verified\thalves: under none of the secrets", "")
	command(t, r.out, "verify", "--secret-file", write(t, "both", secretB+"\n"+secretA+"\n")).want(t, 0, ids[0]+"\tverified\n", "")
	// Truncated, foreign and mixed input.
	command(t, ids[0]+"\n"+ids[1][:31]+"\nb3: 0\n\n4bf92f3577b34da6a3ce929d0e0e4736\n", "verify").want(t, 1, "4bf92f3577b34da6a3ce929d0e0e4736\tnot verified\tfuture: its time is ", "line 2: ")
	command(t, "", "verify", "--max-age", "1ns", ids[0]).want(t, 1, "not verified\tage: its time is ", "")
	command(t, "", "verify", traceid.Max(time.Now().Add(time.Hour)).String()).want(t, 1, "not verified\tfuture: its time is ", "")
	if r := command(t, "xyz\n"+secretB, "verify", "-q"); r != (result{code: 1}) {
		t.Errorf("quiet, with invalid input: %+v", r)
	}

	command(t, "", "inspect", ids[0]).want(t, 0, "halves agree", "")
	command(t, "", "inspect", ids[0]).want(t, 0, "traceflake trace ID  "+traceid.Time(traceID(t, ids[0])).Format("2006-01-02T15:04:05"), "")
	t.Setenv(setup.SecretFileVar, "")
	command(t, "", "inspect", ids[0]).want(t, 0, "a secret would decide", "")
}

func TestNewWithoutSecret(t *testing.T) {
	r := command(t, "", "new")
	r.want(t, 0, something, "")
	if id := traceID(t, strings.TrimSpace(r.out)); time.Since(traceid.Time(id)) > time.Minute {
		t.Errorf("time %v", traceid.Time(id))
	}
	r = command(t, "", "new", "--span", "-n", "2")
	r.want(t, 0, something, "")
	if !regexp.MustCompile(`^([0-9a-f]{16}\n){2}$`).MatchString(r.out) {
		t.Errorf("span IDs %q", r.out)
	}
}

func TestNewAt(t *testing.T) {
	secret := write(t, "secret", secretA)
	at := time.Date(2021, 2, 3, 4, 5, 6, 7e6, time.UTC)
	r := command(t, "", "new", "--at", at.Format(time.RFC3339Nano), "--secret-file", secret)
	id := traceID(t, strings.TrimSpace(r.out))
	if !traceid.Time(id).Equal(at) {
		t.Errorf("time %v", traceid.Time(id))
	}
	command(t, "", "verify", "--max-age", "100000h", "--secret-file", secret, id.String()).want(t, 1, "not verified", "")
	command(t, "", "inspect", "--secret-file", secret, id.String()).want(t, 0, "given to an old record at ", "")
	command(t, "", "new", "--at", "2019-12-31").want(t, 2, "", "before 2020")
}

func TestInspectJSON(t *testing.T) {
	secret := write(t, "secret", secretA)
	ids := command(t, "", "new", "--secret-file", secret).out
	in := "traceparent: 00-" + strings.TrimSpace(ids) + "-00f067aa0ba902b7-01\nnonsense\n1541815603606036480\n"
	r := command(t, in, "inspect", "-o", "json", "--secret-file", secret)
	r.want(t, 1, something, `line 2: not an ID: "nonsense"`)
	type row struct {
		Line       int
		Role, ID   string
		Candidates []struct {
			Kind  string
			Time  time.Time
			Parts map[string]any
		}
	}
	var rows []row
	for _, line := range lines(r.out) {
		var one row
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		rows = append(rows, one)
	}
	if len(rows) != 3 || rows[0].Role != "trace" || rows[1].Role != "span" || rows[2].Line != 3 {
		t.Fatalf("rows %+v", rows)
	}
	if c := rows[0].Candidates; len(c) != 1 || c[0].Parts["halves"] != "agree" || c[0].Parts["sequence"] != 0.0 {
		t.Errorf("trace ID %+v", c)
	}
	if c := rows[2].Candidates; c[len(c)-1].Kind != "64 bits" {
		t.Errorf("a number %+v", c)
	}
}

// A long list is printed as tables of a few hundred rows; no row is lost.
func TestInspectMany(t *testing.T) {
	var in strings.Builder
	for range 3 * linesAtOnce {
		in.WriteString("01ARZ3NDEKTSV4RRFFQ69G5FAV\n")
	}
	in.WriteString(strings.Repeat("x", 3*maxLine) + "\n01ARZ3NDEKTSV4RRFFQ69G5FAV")
	r := command(t, in.String(), "inspect")
	r.want(t, 1, "ULID", "line 601: not an ID")
	if n := strings.Count(r.out, "2016-07-30T23:54:10.259Z"); n != 3*linesAtOnce+1 {
		t.Errorf("%d rows", n)
	}
}

func TestRange(t *testing.T) {
	command(t, "", "range", "2024-01-02T03:04:05Z", "2024-01-02T03:04:06Z").want(t, 0, "0eb4dcf8440000000000000000000000\n", "")
	from, to := time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2024, 1, 2, 3, 4, 6, 0, time.UTC)
	low, high := traceid.Min(from).String(), traceid.Max(to).String()
	command(t, "", "range", "1704164645", "1704164646000").want(t, 0, low+"\n"+high+"\n", "")
	command(t, "", "range", "1704164645", "1704164646", "-o", "sql", "--column", "trace_id").want(t, 0, "trace_id BETWEEN '"+low+"' AND '"+high+"'\n", "")
	command(t, "", "range", "1704164645", "1704164646", "-o", "json").want(t, 0, `{"max":"`+high+`","min":"`+low+`"}`, "")
	command(t, "", "range", "now-1h", "now").want(t, 0, "\n", "")
	command(t, "", "range", "now", "now-1h").want(t, 2, "", "is before FROM")
	command(t, "", "range", "soon", "now").want(t, 2, "", `FROM: "soon" is not a time`)
	command(t, "", "range", "now", "nowish").want(t, 2, "", "not an offset from now")
	command(t, "", "range", "soon", "now").want(t, 2, "", `want "now", an offset such as now-90m or now-7d, a date, RFC 3339`)
	command(t, "", "range", "now-7x", "now").want(t, 2, "", "the units are ms, s, m, h and d")
	command(t, "", "range", "now").want(t, 2, "", `["now"] does not fit; usage: traceflake range FROM TO`)
	command(t, "", "range", "-1h", "now").want(t, 2, "", "-1h is not a flag; for a time in the past write now-1h")
	week := traceid.Min(time.Now().Add(-7 * 24 * time.Hour)).String()
	command(t, "", "range", "now-7d", "now").want(t, 0, week[:7], "")
}

func TestKeygen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	if r := command(t, "", "keygen", path); r != (result{}) {
		t.Errorf("%+v", r)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	keyring(t, path)
	command(t, "", "keygen", path).want(t, 2, "", "exists")
	command(t, "", "keygen", "--secret-file", path+"2").want(t, 2, "", "give the new file as an argument: traceflake keygen FILE")
	t.Chdir(t.TempDir())
	if r := command(t, "", "keygen", "-"); r.code != 0 || len(r.out) != 33 {
		t.Errorf("keygen -: %+v", r)
	}
	if _, err := os.Stat("-"); err == nil {
		t.Error("keygen - wrote a file of that name")
	}
	a, b := command(t, "", "keygen").out, command(t, "", "keygen").out
	if !regexp.MustCompile(`^[0-9a-f]{32}\n$`).MatchString(a) || a == b {
		t.Errorf("%q, %q", a, b)
	}
}

func TestSecretFile(t *testing.T) {
	id := "19501f8143800000839a4a438027b2c8"
	command(t, "", "verify", id).want(t, 2, "", "no secret: give --secret-file or set TRACEFLAKE_SECRET_FILE")
	command(t, "", "verify", id, "--secret-file", filepath.Join(t.TempDir(), "none")).want(t, 2, "", "no such file")
	command(t, "", "verify", id, "--secret-file", write(t, "bad", "# x\n"+secretA[:30])).want(t, 2, "", "line 2 has 30 characters")
	command(t, "", "inspect", id, "--secret-file", write(t, "bad", secretA+"x")).want(t, 2, "", "line 1 has 33 characters")
	if runtime.GOOS == "windows" {
		return
	}
	open := write(t, "open", secretA)
	for _, mode := range []os.FileMode{0o644, 0o604, 0o640, 0o400} {
		if err := os.Chmod(open, mode); err != nil {
			t.Fatal(err)
		}
		want := ""
		if mode&0o004 != 0 {
			want = "every user of this machine can read the secret"
		}
		command(t, "", "inspect", id, "--secret-file", open).want(t, 0, id, want)
	}
}

func TestLease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases.db")
	store := "bolt:" + path
	command(t, "", "lease", "list", "--store", store).want(t, 2, "", "no such file")
	if _, err := os.Stat(path); err == nil {
		t.Error("listing leases made a file")
	}
	t.Setenv(setup.NodesVar, "0+8") // one block
	r := command(t, "", "new", "--store", store)
	t.Setenv(setup.NodesVar, "")
	r.want(t, 0, something, "")
	id := strings.TrimSpace(r.out)
	if r := command(t, "", "lease", "list", "--store", store); r.code != 0 || len(lines(r.out)) != 2 {
		t.Errorf("one block was granted, the list is\n%s", r.out)
	}

	// A process holds the block.
	s, err := driver.Open(t.Context(), store, driver.NodeRange{Nodes: 8}, driver.WithSecret(driver.OwnSecret))
	if err != nil {
		t.Fatal(err)
	}
	holder := lease.NewNonce()
	g, err := s.Acquire(t.Context(), lease.Request{Nonce: holder, Now: time.Now().Add(time.Second), TTL: 5 * time.Minute, Owner: "checkout-7"})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(setup.StoreVar, store)
	node := fmt.Sprint(g.Node + 3)
	command(t, "", "lease", "show", node).want(t, 0, "held by checkout-7 ("+holder+") until "+g.End.UTC().Format(time.RFC3339), "")
	command(t, "", "lease", "show", node, "-o", "json").want(t, 0, `"holder":"`+holder+`"`, "")
	// After its release it has no holder, even in its last remaining second.
	next := lease.NewNonce()
	if err := s.Release(t.Context(), g, next, g.End.Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	command(t, "", "lease", "show", node).want(t, 0, "without an owner ("+next+"), free from ", "")
	blocks, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	granted := func(node uint32) bool {
		return slices.ContainsFunc(blocks, func(b lease.Block) bool { return b.Node == node })
	}
	never := uint32(0)
	for granted(never) {
		never += 8
	}
	command(t, "", "lease", "show", fmt.Sprint(never)).want(t, 1, "", fmt.Sprintf("node %d was never granted", never))
	command(t, "", "lease", "show", "131072").want(t, 2, "", "is not a node")

	// The owner is shown for an ID of that node; the file's own secret decodes it.
	k := randflake.NewKeyring(s.(driver.CodecStore).Codec())
	if !traceid.Inspect(k, traceID(t, id)).Agree {
		t.Error("the ID was not made with the file's secret")
	}

	command(t, "", "lease", "raise", "soon").want(t, 2, "", `UNTIL: "soon" is not a time`)
	command(t, "", "lease", "raise", "1999-01-01", "--force").want(t, 2, "", "before the epoch")
	until := time.Now().Add(24 * time.Hour).Truncate(time.Second).UTC()
	command(t, "", "lease", "raise", until.Format(time.RFC3339)).want(t, 0, "nothing before "+until.Format(time.RFC3339), "")
	command(t, "", "lease", "list").want(t, 0, "without a holder, free from "+until.Format(time.RFC3339), "")
	if n := strings.Count(command(t, "", "lease", "list", "-o", "json").out, until.Format(time.RFC3339)); n != 16384 {
		t.Errorf("%d blocks raised", n)
	}
	if _, err := s.Renew(t.Context(), g, lease.Request{Nonce: lease.NewNonce(), Now: time.Now(), TTL: 10 * time.Minute}); !errors.Is(err, lease.ErrLost) {
		t.Errorf("a lease is renewed after the raise: %v", err)
	}
	command(t, "", "new").want(t, 2, "", "no leased node")
}

// A mistyped variable is reported once, in whatever number of places the environment is needed.
func TestUnknownVariable(t *testing.T) {
	store := "bolt:" + filepath.Join(t.TempDir(), "leases.db")
	command(t, "", "new", "--store", store).want(t, 0, something, "")
	t.Setenv("TRACEFLAKE_STROE", store)
	for _, args := range [][]string{{"new"}, {"inspect", "4bf92f3577b34da6a3ce929d0e0e4736", "--store", store}, {"lease", "list", "--store", store}} {
		if r := command(t, "", args...); r.code != 0 || strings.Count(r.errOut, "did you mean TRACEFLAKE_STORE?") != 1 {
			t.Errorf("%q: %+v", args, r)
		}
	}
}

func TestInspectOwner(t *testing.T) {
	secret, store := write(t, "secret", secretA), "bolt:"+filepath.Join(t.TempDir(), "leases.db")
	t.Setenv(setup.NodesVar, "64+64")
	s, err := driver.Open(t.Context(), store, driver.NodeRange{Nodes: 8}, driver.WithSecret(driver.OwnSecret))
	if err != nil {
		t.Fatal(err)
	}
	holder := lease.NewNonce()
	g, err := s.Acquire(t.Context(), lease.Request{Nonce: holder, Now: time.Now(), TTL: time.Minute, Owner: "checkout-7"})
	if err != nil {
		t.Fatal(err)
	}
	for node, want := range map[uint32]string{
		g.Node + 5: fmt.Sprintf("block %d+8, held by checkout-7 (%s", g.Node, holder), g.Node ^ 8: "lease now never granted",
	} {
		low, err := keyring(t, secret).Codec().Encode(randflake.Parts{Time: time.Now(), Node: node})
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv(setup.NodesVar, "")
		command(t, "", "inspect", "--secret-file", secret, "--store", store, low.String()).want(t, 0, want, "")
	}
}

func TestDeadStore(t *testing.T) {
	secret, store := write(t, "secret", secretA), "postgres://user:hunter2@127.0.0.1:1/db"
	command(t, "", "lease", "list", "--store", store).want(t, 2, "", "store: pgstore")
	command(t, "", "inspect", "4bf92f3577b34da6a3ce929d0e0e4736", "--store", store).want(t, 1, "random 128 bits", "the store does not answer: pgstore")
	command(t, "", "new", "--store", store, "--secret-file", secret).want(t, 2, "", "no leased node")
	command(t, "", "new", "--store", store).want(t, 2, "", "set TRACEFLAKE_SECRET_FILE")
	command(t, "", "lease", "list", "--store", "redis://user:hunter2@h").want(t, 2, "", "unknown kind of store; its URL must begin with one of: bolt, etcd, etcds, k8s, postgres")
	command(t, "", "lease", "list", "--store", "postgres://user:hunter2@h:port:/").want(t, 2, "", "not an address")
	command(t, "", "lease", "list").want(t, 2, "", "no store")
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		want string
		args []string
	}{
		{`unknown command "nope" for "traceflake"; traceflake --help lists them`, []string{"nope"}},
		{`unknown command "inspct" for "traceflake"; did you mean inspect?`, []string{"inspct"}},
		{`did you mean new or verify or version?`, []string{"ver"}},
		{"unknown flag", []string{"new", "--nope"}},
		{`unknown command "neither" for "traceflake lease"; traceflake lease --help lists them`, []string{"lease", "neither"}},
		{`unknown command "rais" for "traceflake lease"; did you mean raise?`, []string{"lease", "rais"}},
		{`did you mean postgres?`, []string{"sql", "postgre"}},
		{"-n: 0", []string{"new", "-n", "0"}},
		{`["x"] does not fit; usage: traceflake new`, []string{"new", "x"}},
		{`--number: "x" is not a whole number`, []string{"new", "-n", "x"}},
		{`--max-age: "1 day": want a duration such as 90s, 10m, 1h30m or 30d`, []string{"verify", "--max-age", "1 day", "x"}},
		{`unknown command "nope" for "traceflake"`, []string{"help", "nope"}},
		{`unknown command "nope" for "traceflake lease"`, []string{"help", "lease", "nope"}},
		{`unknown command "tcsh" for "traceflake completion"`, []string{"completion", "tcsh"}},
		{"--at is for trace IDs", []string{"new", "--span", "--at", "now"}},
		{`--output: "xml" is not one of table, json`, []string{"inspect", "-o", "xml", "x"}},
		{`--output: "table" is not one of text, json`, []string{"verify", "-o", "table", "x"}},
		{`--output: "xml" is not one of text, sql, json`, []string{"range", "-o", "xml", "now", "now"}},
		{`--output: "text" is not one of table, json`, []string{"lease", "list", "-o", "text"}},
		{"--time is missing", []string{"backfill"}},
		{"--id-field must not be empty", []string{"backfill", "--time", "ts", "--id-field", ""}},
		{"not ndjson or csv", []string{"backfill", "--time", "ts", "--format", "xml"}},
		{"no such file", []string{"backfill", "--time", "ts", "/nonexistent"}},
		{"--time-format", []string{"backfill", "--time", "ts", "--time-format", "minutes"}},
		{"--comma", []string{"backfill", "--time", "ts", "--comma", `"`}},
		{"--deterministic: no secret", []string{"backfill", "--time", "ts", "--deterministic"}},
	} {
		r := command(t, "", c.args...)
		r.want(t, 2, "", c.want)
		if r.out != "" {
			t.Errorf("%q wrote %q", c.args, r.out)
		}
	}
	command(t, "", "verify", "--secret-file", write(t, "secret", secretA)).want(t, 2, "", "no IDs to verify")
	t.Setenv(setup.TTLVar, "ten minutes")
	command(t, "", "new").want(t, 2, "", "TRACEFLAKE_TTL")
}

func TestCompletionAndVersion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		command(t, "", "completion", shell).want(t, 0, "traceflake", "")
	}
	command(t, "", "help", "lease", "raise").want(t, 0, "traceflake lease raise UNTIL", "")
	command(t, "", "help").want(t, 0, "Available Commands:", "")
	command(t, "", "--version").want(t, 0, "traceflake version ", "")
	for _, args := range [][]string{{"--help"}, {"inspect", "--help"}, {"lease", "raise", "--help"}, {"backfill", "--help"}} {
		command(t, "", args...).want(t, 0, "Usage:", "")
	}
}

func TestSQL(t *testing.T) {
	command(t, "", "sql", "clickhouse").want(t, 0, "CREATE TABLE", "")
	functions := command(t, "", "sql", "clickhouse", "--functions")
	functions.want(t, 0, "traceIDTime", "")
	if strings.Contains(functions.out, "CREATE TABLE") {
		t.Error("--functions prints tables")
	}
	command(t, "", "sql", "clickhouse", "--table", "spans", "--database", "db", "--ttl", "720h").want(t, 0, "spans", "")
	command(t, "", "sql", "clickhouse", "--table", "a`b").want(t, 2, "", "table")
	if r := command(t, "", "sql", "clickhouse", "--overlay"); r.code != 0 || strings.Contains(r.out, "CREATE TABLE") {
		t.Errorf("the overlay creates a table: %+v", r)
	}
	command(t, "", "sql", "postgres").want(t, 0, "trace_id_time", "")
	command(t, "", "sql", "postgres", "--schema", "tools").want(t, 0, `"tools"`, "")
	command(t, "", "sql", "postgres", "--schema", "pg_x").want(t, 2, "", "schema")
}

func TestBackfill(t *testing.T) {
	secret := write(t, "secret", secretA)
	in := `{"ts":"2024-01-02T03:04:05Z","k":"a"}` + "\n" + `{"ts":"2024-01-02T03:04:06Z","k":"a"}` + "\n" + `{"ts":"2019-01-02T03:04:05Z"}` + "\n" + `{"ts":"20`
	r := command(t, in, "backfill", "--time", "ts", "--key", "k", "--secret-file", secret)
	r.want(t, 1, `{"ts":"2019-01-02T03:04:05Z"}`+"\n"+`{"ts":"20`, "line 3: 2019-01-02T03:04:05Z: traceid: the time is before")
	r.want(t, 1, something, "line 4: the line is not a JSON object; was it truncated?")
	if !strings.Contains(r.errOut, "4 records: 2 got an ID (1 keys, 0 records without one), 0 had one, 2 reported") {
		t.Errorf("summary %q", r.errOut)
	}
	ids := regexp.MustCompile(`"trace_id":"([0-9a-f]{32})"`).FindAllStringSubmatch(r.out, -1)
	if len(ids) != 2 || ids[0][1] != ids[1][1] {
		t.Fatalf("IDs %q", ids)
	}
	// It decodes as an ID for an old record, and does not verify.
	k := keyring(t, secret)
	info := traceid.Inspect(k, traceID(t, ids[0][1]))
	if info.Agree || !info.Time.Equal(time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)) || time.Since(info.Parts.Time) > time.Minute || time.Until(info.Parts.Time) > time.Minute {
		t.Errorf("%+v", info)
	}

	// A file in the format of its name; deterministic, so the same twice.
	path := write(t, "old.csv", "ts,k\r\n1704164645,a\r\n1704164646,b\r\n")
	args := []string{"backfill", "--time", "ts", "--key", "k", "--id-field", "TraceId", "--deterministic", "--secret-file", secret, "-q", path}
	r = command(t, "", args...)
	r.want(t, 0, "ts,k,TraceId\r\n1704164645,a,0eb4dcf844", "")
	if again := command(t, "", args...); again.out != r.out {
		t.Errorf("first %q, then %q", r.out, again.out)
	}
	path = write(t, "old.tsv", "ts\tk\n1704164645\ta\n")
	command(t, "", "backfill", "--time", "ts", "--comma", `\t`, path).want(t, 0, "ts\tk\ttrace_id\n1704164645\ta\t0eb4dcf844", "1 got an ID")
	command(t, "ts\n1704164645\n", "backfill", "--time", "ts", "--format", "csv", "--time-format", "ms").want(t, 1, "ts,trace_id\n1704164645,\n", "line 2: ")
	// Without a name or --format the input must begin with an object; one error, not one per line.
	r = command(t, strings.Repeat("1704164645,x\n", 2000), "backfill", "--time", "ts")
	r.want(t, 2, "", "give --format csv or --format ndjson")
	if r.out != "" || strings.Count(r.errOut, "\n") != 1 {
		t.Errorf("%+v", r)
	}
	// Nodes are leased from the store, and an unreachable store ends the run.
	store := "bolt:" + filepath.Join(t.TempDir(), "leases.db")
	command(t, in[:38], "backfill", "--time", "ts", "--store", store).want(t, 0, "trace_id", "1 got an ID")
	command(t, in[:38], "backfill", "--time", "ts", "--store", "postgres://127.0.0.1:1/db", "--secret-file", secret).want(t, 2, "", "no leased node")
}

// The built program, for its exit codes and its standard streams.
func TestProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the program")
	}
	program := filepath.Join(t.TempDir(), "traceflake")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	secret := write(t, "secret", secretA)
	runIt := func(stdin string, args ...string) (string, int) {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Env = append(os.Environ(), setup.SecretFileVar+"="+secret)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.Output()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	ids, code := runIt("", "new", "-n", "100")
	if code != 0 || len(lines(ids)) != 100 {
		t.Fatalf("new: %d, %q", code, ids)
	}
	for _, c := range []struct {
		stdin string
		args  []string
		code  int
	}{
		{ids, []string{"verify"}, 0},
		{ids + "4bf92f3577b34da6a3ce929d0e0e4736", []string{"verify"}, 1},
		{"", []string{"verify"}, 2},
		{"", []string{"nope"}, 2},
		{ids, []string{"inspect", "-o", "json"}, 0},
		{"x", []string{"inspect"}, 1},
		{`{"ts":1704164645}`, []string{"backfill", "--time", "ts"}, 0},
		{`{"ts":1}`, []string{"backfill", "--time", "ts"}, 1},
		{"", []string{"lease", "list", "--store", "bolt:/nonexistent/leases.db"}, 2},
	} {
		if _, code := runIt(c.stdin, c.args...); code != c.code {
			t.Errorf("%q: code %d, want %d", c.args, code, c.code)
		}
	}
}
