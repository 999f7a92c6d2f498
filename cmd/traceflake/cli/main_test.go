package cli

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/idgen"
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

// locked is a buffer to which several goroutines write.
type locked struct {
	mu sync.Mutex
	bytes.Buffer
	writes int
}

func (w *locked) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
	return w.Buffer.Write(p)
}

func (w *locked) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Buffer.String()
}

// command runs the command in this process. No secret may ever appear in the output.
func command(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var out, errOut locked
	r := result{code: run(t.Context(), args, strings.NewReader(stdin), &out, &errOut)}
	r.out, r.errOut = out.String(), errOut.String()
	if strings.Contains(r.out+r.errOut, "%!") { // of a wrong format
		t.Errorf("%q prints\n%s%s", args, r.out, r.errOut)
	}
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

// asCommand makes the test's binary the command.
const asCommand = "TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		Main()
	}
	for _, name := range []string{setup.StoreVar, setup.SecretFileVar, setup.TTLVar} {
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

// made returns trace IDs under the secret in a file.
func made(t *testing.T, secret string, n int) (ids []string) {
	t.Helper()
	held := randflake.Lease{Node: 42, Nodes: 1, Start: time.Now().Add(-time.Minute),
		End: time.Now().Add(time.Hour)}
	source, err := randflake.NewGenerator(keyring(t, secret).Codec(), held)
	if err != nil {
		t.Fatal(err)
	}
	generator := idgen.New(idgen.WithSource(source))
	for range n {
		id, _ := generator.NewIDs(t.Context())
		ids = append(ids, id.String())
	}
	return ids
}

const random = "4bf92f3577b34da6a3ce929d0e0e4736"

func TestVerifyInspect(t *testing.T) {
	secret := write(t, "secret", secretA)
	ids := made(t, secret, 3)
	all := strings.Join(ids, "\n") + "\n"
	command(t, all, "verify", "--secret-file", write(t, "other", secretB)).want(t, 1,
		ids[0]+"\tnot verified\thalves: no secret decodes the low half", "")
	command(t, all, "verify", "--secret-file", write(t, "both", secretB+"\n"+secretA+"\n")).want(t,
		0, ids[0]+"\tverified\n", "")
	// Without a secret, with one from the environment; as arguments, with a header.
	command(t, "", "inspect", ids[0]).want(t, 0, "a secret would decide", "")
	t.Setenv(setup.SecretFileVar, secret)
	command(t, "", append([]string{"verify"}, ids...)...).want(t, 0, ids[2]+"\tverified\n", "")
	command(t, "traceparent: 00-"+ids[0]+"-00f067aa0ba902b7-01\n", "verify", "-").want(t, 0,
		ids[0]+"\tverified\n", "")
	// Truncated, foreign and mixed input.
	command(t, ids[0]+"\n"+ids[1][:31]+"\nb3: 0\n\n"+random+"\n", "verify").want(t, 1,
		random+"\tnot verified\tfuture: its time is ", "line 2: ")
	r := command(t, "", "verify", "--max-age", "720h", "0eb4dcf8440000000000000000000001")
	r.want(t, 1, "not verified\tage: its time is ", "")
	r.want(t, 1, "more than 30d ago (--max-age)", "") // not 720h0m0s
	at := traceid.Time(traceID(t, ids[0])).Format("2006-01-02T15:04:05")
	r = command(t, "", "inspect", ids[0], ids[1])
	r.want(t, 0, "traceflake trace ID  "+at, "")
	r.want(t, 0, ", node 42, node sequence 0, secret 1, halves agree\n", "")
	if rows := lines(r.out); len(rows) != 3 || !strings.HasPrefix(rows[0], "ID ") ||
		strings.Index(rows[0], "KIND") != strings.Index(rows[1], "traceflake") {
		t.Errorf("rows %q", rows)
	}

	// JSON
	command(t, "", "verify", "-o", "json", ids[0]).want(t, 0, `{"id":"`+ids[0]+`","verified":true}`+
		"\n", "")
	r = command(t, "\nb3: 0\ntraceparent: 00-"+random+"-00f067aa0ba902b7-01\n", "verify", "-o",
		"json")
	r.want(t, 1, `{"line":3,"id":"`+random+`","verified":false,"reason":"future: its time is `,
		"line 2: ")
	r.want(t, 1, `{"line":2,"id":"b3: 0","verified":false,"error":"not an ID: \"0\" is all zeros`,
		"line 2: ")
	r = command(t, "traceparent: 00-"+ids[0]+"-"+random[:16]+"-01\nnonsense\n", "inspect", "-o",
		"json")
	r.want(t, 1, `{"line":1,"role":"trace","id":"`+ids[0]+`","kind":"traceflake trace ID","time":"`+
		at, `line 2: not an ID: "nonsense"`)
	r.want(t, 1, `{"line":1,"role":"span","id":"`+random[:16]+`","kind":"`, "line 2: ")
	for _, row := range lines(r.out) {
		if !json.Valid([]byte(row)) {
			t.Errorf("not JSON: %s", row)
		}
	}
}

func TestNew(t *testing.T) {
	r := command(t, "", "new", "-n", "2")
	r.want(t, 0, something, "")
	ids := lines(r.out)
	if len(ids) != 2 || ids[0] >= ids[1] ||
		time.Since(traceid.Time(traceID(t, ids[0]))) > time.Minute {
		t.Errorf("IDs %q", ids)
	}
	r = command(t, "", "new", "--span", "-n", "2")
	r.want(t, 0, something, "")
	if !regexp.MustCompile(`^([0-9a-f]{16}\n){2}$`).MatchString(r.out) {
		t.Errorf("span IDs %q", r.out)
	}
	store, _ := directory(t)
	t.Setenv(setup.StoreVar, store)
	id := strings.TrimSpace(command(t, "", "new", "--at", "2021-02-03T04:05:06.007Z").out)
	if at := traceid.Time(traceID(t, id)); !at.Equal(
		time.Date(2021, 2, 3, 4, 5, 6, 7e6, time.UTC)) {
		t.Errorf("time %v", at)
	}
	command(t, "", "verify", "--max-age", "20y", id).want(t, 1, "not verified", "")
	command(t, "", "inspect", id).want(t, 0, "given to an old record at ", "")
	command(t, "", "new", "--at", "2019-12-31").want(t, 2, "", "not between 2020")
	// Times in, IDs out.
	r = command(t, "2024-01-02T03:04:05Z\n1704164646", "new", "--at", "-")
	if r.want(t, 0, "0eb4dcf844", ""); len(lines(r.out)) != 2 {
		t.Errorf("%q for 2 times", r.out)
	}
	command(t, "2024-01-02T03:04:05Z\n\n1704164646\n", "new", "--at", "-").want(t, 2, "0eb4dcf844",
		`line 2: "" is not a time`)
	command(t, "2024-01-02T03:04:05Z\nsoon\n", "new", "--at", "-").want(t, 2, "0eb4dcf844",
		`line 2: "soon" is not a time`)
	command(t, "0001-01-01\n", "new", "--at", "-").want(t, 2, "",
		"line 1: traceid: the time is not between 2020")
	// The same times and keys give the same IDs under a secret.
	keys := "2024-01-02T03:04:05Z\ta\n1704164645\tb\n1704164645000\ta\n"
	deterministic := []string{"new", "--at", "-", "--deterministic", "--secret-file"}
	r = command(t, keys, append(deterministic, write(t, "first", secretA))...)
	r.want(t, 0, "0eb4dcf844", "")
	ids = lines(r.out)
	if len(ids) != 3 || ids[0] != ids[2] || ids[0] == ids[1] ||
		ids[0] != "0eb4dcf8446b5b2f0539e16ace656e82" {
		t.Errorf("deterministic: %q", ids)
	}
	if other := command(t, keys, append(deterministic, write(t, "other", secretB))...); lines(
		other.out)[0] == ids[0] {
		t.Error("another secret gives the same IDs")
	}
	command(t, "2024-01-02\n", append(deterministic, write(t, "first", secretA))...).want(t, 2, "",
		"line 1: --deterministic needs a key for each time")
	// under the store's secret
	if own := command(t, keys, "new", "--at", "-", "--deterministic"); own.code != 0 ||
		own.out == r.out {
		t.Errorf("%+v", own)
	}
	command(t, "", "new", "--deterministic").want(t, 2, "", "add --at TIME and --key")
	// Where a service would use random IDs, it fails (TestDeadStore); so it does if the lease is
	// not taken back.
	server, s := newServer(t, time.Now)
	own := filepath.Join(t.TempDir(), "own")
	command(t, "", "lease", "create", "--store", server, "--secret-file", own).want(t, 0, something,
		"")
	created := s.Writes
	s.Accepts = func(string, bool) bool {
		if s.Writes > created+1 { // the release, which follows the grant
			s.Delete("")
			return false
		}
		return true
	}
	command(t, "", "new", "--store", server, "--secret-file", own).want(t, 2, something,
		"release node ")
}

func TestTimes(t *testing.T) {
	want := time.Date(2024, 3, 5, 6, 7, 8, 0, time.UTC)
	milli, nano := want.Add(123*time.Millisecond), want.Add(123456789)
	for text, want := range map[string]time.Time{
		"2024-03-05T06:07:08Z": want, "2024-03-05T06:07:08": want,
		"2024-03-05":                    want.Truncate(24 * time.Hour),
		"2024-03-05T07:07:08.123+01:00": milli, "2024-03-05 06:07:08.123456789": nano,
		"2024-03-05 06:07:08.123+00": milli,
		"1709618828":                 want, "1709618828.123456789": nano, "1709618828123": milli,
		"1709618828123456":    nano.Truncate(time.Microsecond),
		"1709618828123456789": nano, "-1": time.Unix(-1, 0),
		"99999999999": time.Unix(99999999999, 0), "100000000000": time.UnixMilli(1e11),
		"99999999999999": time.UnixMilli(99999999999999), "100000000000000": time.UnixMicro(1e14),
		"99999999999999999":  time.UnixMicro(99999999999999999),
		"100000000000000000": time.Unix(1e8, 0),
		"now":                nano, "now-90m": nano.Add(-90 * time.Minute),
		"+24h":    nano.Add(24 * time.Hour),
		"90m ago": nano.Add(-90 * time.Minute), "1h 30m ago": nano.Add(-90 * time.Minute),
		"today":                   want.Truncate(24 * time.Hour),
		"yesterday":               want.Truncate(24*time.Hour).AddDate(0, 0, -1),
		"2024-03-05 06:07":        want.Truncate(time.Minute),
		"2024-03-05T07:07+01:00":  want.Truncate(time.Minute),
		"2024-03-05 06:07:08 UTC": want, "2024-03-05 07:07:08.123 +0100": milli,
		"2024-03-05 06:07:08.123456789 +0000 UTC": nano,
		"2024/03/05 06:07:08":                     want, "2024-03-05T06:07:08+0000": want,
		"Tue Mar  5 06:07:08 UTC 2024": want, "Tue, 05 Mar 2024 06:07:08 GMT": want,
		"Tue, 05 Mar 2024 07:07:08 +0100": want,
	} {
		if got, err := parseTime(text, nano); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "tomorrow", "Tue Mar  5 06:07:08 CEST 2024", "soon ago",
		"2024-13-05T06:07:08Z", "12:30", "1e9", "1.2.3", "1.-2", "1m2", "0x10", "nowish", "now-7x",
		"99999999999999999999", strings.Repeat("x", 1000)} {
		if got, err := parseTime(text, nano); err == nil || len(err.Error()) > 200 {
			t.Errorf("%q: %v, %v, want a short error", text, got, err)
		}
	}
}

// Of a long list no row is lost. It takes at most one write per 32 KiB.
func TestInspectMany(t *testing.T) {
	const id = "16c6e867fa0000050123456789abcdef"
	for _, output := range []string{"text", "json"} {
		var out locked
		code := run(t.Context(), []string{"inspect", "-o", output},
			strings.NewReader(strings.Repeat(id+"\n", 20_000)), &out, io.Discard)
		if most := out.Len()/(32<<10) + 1; code != 0 || out.writes > most ||
			strings.Count(out.String(), "\n") < 20_000 {
			t.Errorf("%s: code %d, %d writes for %d bytes, want at most %d", output, code,
				out.writes, out.Len(), most)
		}
	}
	in := strings.Repeat(id+"\n", 600) + strings.Repeat("x", 3*maxLine) + "\n\x00\xff\n" + id
	r := command(t, in, "inspect")
	r.want(t, 1, something, "line 601: the line is longer than 1 MiB")
	r.want(t, 1, something, `line 602: not an ID: "\x00\xff"`)
	verdict := command(t, in, "verify", "-o", "json", "--secret-file", write(t, "secret", secretA))
	verdict.want(t, 1,
		`{"line":601,"id":"","verified":false,"error":"the line is longer than 1 MiB`,
		"line 601: the line is longer than 1 MiB")
	if n, names := strings.Count(r.out, "2026-03-14T12:00:00.5Z"), strings.Count(r.out,
		"KIND"); n != 601 || names != 1 {
		t.Errorf("%d rows, %d times the names of the columns", n, names)
	}
}

func TestGzip(t *testing.T) {
	secret := write(t, "secret", secretA)
	ids := strings.Join(made(t, secret, 1000), "\n") + "\n"
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(ids)) // a Buffer never fails
	_ = z.Close()
	zipped := b.String()
	plain := command(t, ids+ids, "verify", "--secret-file", secret)
	// Two members, as from `cat a.gz b.gz`.
	if got := command(t, zipped+zipped, "verify", "--secret-file", secret); got != plain {
		t.Errorf("code %d, %d bytes, want %d, %d", got.code, len(got.out), plain.code,
			len(plain.out))
	}
	command(t, zipped[:2000], "verify", "--secret-file", secret).want(t, 2, "\tverified\n",
		"reading: unexpected EOF")
	command(t, zipped[:5], "verify", "--secret-file", secret).want(t, 2, "",
		"reading: unexpected EOF")
	b.Reset()
	z.Reset(&b)
	_ = z.Close()
	command(t, b.String(), "inspect").want(t, 2, "", "no IDs")
}

func TestOutput(t *testing.T) {
	from, to := time.Unix(1704164645, 0), time.Unix(1704164646, 0)
	low, high := traceid.Min(from).String(), traceid.Max(to).String()
	week := traceid.Min(time.Now().Add(-7 * 24 * time.Hour)).String()
	for args, want := range map[string]string{
		"range 2024-01-02T03:04:05Z 2024-01-02T03:04:06Z": "0eb4dcf8440000000000000000000000\n" +
			high + "\n",
		"range 1704164645 1704164646000": low + "\n" + high + "\n",
		"range 1704164645 1704164646 -o sql": "TraceId BETWEEN '" + low +
			"' AND '" + high + "'\n",
		"range 1704164645 1704164646 -o sql --column trace_id": "trace_id BETWEEN '" + low +
			"' AND '" + high + "'\n",
		"range 1704164645 1704164646 -o json": `{"min":"` + low +
			`","max":"` + high + `"}` + "\n",
		"range --trace 1950fb0f8880000086cdcca4ab608495 -o json": `{"not_before":"2026-11-21T22:07:06.385Z"}`,
		// clamped
		"range 9999999999 99999999999":                   strings.Repeat("f", 32),
		"range now-7d now":                               week[:7],
		"range --trace 1950fb0f8880000086cdcca4ab608495": "2026-11-21T22:07:06.385Z\n",
		"range --trace 1950fb0f8880000086cdcca4ab608495 -o sql": "TraceId = " +
			"'1950fb0f8880000086cdcca4ab608495' AND Timestamp >= toDateTime64('2026-11-21 " +
			"22:07:06.385', 3, 'UTC')\n",
		"range --trace 1950fb0f8880000086cdcca4ab608495 -o tempo":   "end=4102444800&start=1795298826\n",
		"range --trace 1950fb0f8880000086cdcca4ab608495 -o jaeger":  "startTime=2026-11-21T22%3A07%3A06.385Z",
		"range --trace 1950fb0f8880000086cdcca4ab608495 --slack 0s": "2026-11-21T23:07:06.385Z\n",
		"clickhouse create --dry-run --table spans --ttl 720h": "CREATE VIEW IF NOT EXISTS " +
			"`spans_trace_id_ts`",
		"clickhouse create --dry-run": "'UTC'), toUInt64(((toInt64(",
		"clickhouse create --dry-run --overlay": "ALTER TABLE `otel_traces` " +
			"ADD INDEX IF NOT EXISTS idx_trace_id_range",
		"postgres --schema tools": `FUNCTION "tools"`,
		"help lease raise": "traceflake lease raise " +
			"[flags]",
		"completion bash": "traceflake",
		// not as Go prints durations
		"verify --help": "(default 1d)",
		"--version":     "traceflake version ",
	} {
		command(t, "", strings.Fields(args)...).want(t, 0, want, "")
	}
}

// A mistyped variable is reported once, in whatever number of places the environment is needed.
func TestUnknownVariable(t *testing.T) {
	store := "file:" + filepath.Join(t.TempDir(), "leases")
	command(t, "", "new", "--store", store).want(t, 0, something, "")
	t.Setenv("TRACEFLAKE_STROE", store)
	for _, args := range [][]string{{"new"},
		{"inspect", "4bf92f3577b34da6a3ce929d0e0e4736", "--store", store},
		{"lease", "list", "--store", store}} {
		if r := command(t, "", args...); r.code != 0 ||
			strings.Count(r.errOut,
				"TRACEFLAKE_STROE (did you mean TRACEFLAKE_STORE?) is not known") != 1 {
			t.Errorf("%q: %+v", args, r)
		}
	}
}
