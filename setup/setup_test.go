package setup_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/internal/metrictest"
	"github.com/traceflake/traceflake/internal/reports"
	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/internal/settings"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/filestore"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/setup"
	"github.com/traceflake/traceflake/sparx64"
	"github.com/traceflake/traceflake/traceid"
)

const secret = "dffd6021bb2bd5b0af676290809ec3a5"

// fakeStore is a store that is registered as another module would do it.
type fakeStore struct {
	driver.Store
	url    string
	hangs  atomic.Bool
	closed int
}

// opened is the store that was opened last.
var opened *fakeStore

func init() {
	driver.Register("setup-test", func(url string) (driver.Store, error) {
		if strings.Contains(url, "refuse") {
			return nil, errors.New("the driver refuses")
		}
		nodes := lease.Description{First: 256, Nodes: 64, BlockSize: 16}
		opened = &fakeStore{Store: driver.NewMemory(nodes), url: url}
		return opened, nil
	})
}

var errAway = errors.New("connection refused")

// slowAnswer is later than the second that a start otherwise waits.
const slowAnswer = 1503 * time.Millisecond

// answers maps the end of the URL to the result of Acquire.
var answers = map[string]struct {
	after time.Duration
	err   error
}{
	"dead":     {time.Hour, nil},
	"away":     {0, errAway},
	"full":     {0, lease.ErrNoFreeNode},
	"role":     {0, lease.ErrMisconfigured},
	"newer":    {0, lease.ErrSchemaVersion},
	"absent":   {0, lease.ErrNoStore},
	"replaced": {0, lease.ErrReplaced},
	"slow":     {slowAnswer, lease.ErrMisconfigured},
}

func (s *fakeStore) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	for end, answer := range answers {
		if strings.HasSuffix(s.url, end) {
			select {
			case <-time.After(answer.after):
				return lease.Grant{}, answer.err
			case <-ctx.Done():
				return lease.Grant{}, ctx.Err()
			}
		}
	}
	return s.Store.Acquire(ctx, r)
}

func (s *fakeStore) Release(ctx context.Context, g lease.Grant, next string,
	unused time.Time) error {
	if s.hangs.Load() {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.Store.Release(ctx, g, next, unused)
}

func (s *fakeStore) Close() error {
	s.closed++
	return nil
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// env sets the given variables and clears the others.
func env(t *testing.T, vars map[string]string) {
	t.Helper()
	for _, name := range []string{settings.Store, settings.SecretFile, settings.TTL,
		settings.Strict} {
		t.Setenv(name, vars[name])
	}
}

// fleet returns the variables of a fleet's process, and others.
func fleet(t *testing.T, store string, others ...string) map[string]string {
	t.Helper()
	vars := map[string]string{settings.Store: store, settings.SecretFile: file(t, secret+"\n")}
	for i := 0; i < len(others); i += 2 {
		vars[others[i]] = others[i+1]
	}
	return vars
}

// fromEnv opens what the variables configure, until the test ends.
func fromEnv(t *testing.T, vars map[string]string) *setup.IDs {
	t.Helper()
	env(t, vars)
	ids, err := setup.FromEnv(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// fails if the store is unreachable
	t.Cleanup(func() { _ = ids.Shutdown(context.Background()) })
	return ids
}

func TestFleet(t *testing.T) {
	g := fromEnv(t, fleet(t, "setup-test://host", settings.TTL, "1m"))
	id, _ := g.NewIDs(t.Context()) // the first one is already leased
	info := traceid.Inspect(g.Keyring(), id)
	if opened.url != "setup-test://host" || info.Secret != 0 || info.Parts.Node < 256 ||
		info.Parts.Node >= 320 {
		t.Errorf("opened %q: secret %d, node %d", opened.url, info.Secret, info.Parts.Node)
	}
	blocks, err := opened.List(t.Context())
	if err != nil || len(blocks) != 1 || blocks[0].End.Sub(blocks[0].Start) != time.Minute {
		t.Fatalf("%v, %v; want one block for a minute", blocks, err)
	}
	// the second call changes nothing
	err = errors.Join(g.Shutdown(t.Context()), g.Shutdown(t.Context()))
	blocks, listErr := opened.List(t.Context())
	if err != nil || listErr != nil || opened.closed != 1 || blocks[0].Owner != "" {
		t.Errorf("closed %d times, %+v: %v, %v", opened.closed, blocks, err, listErr)
	}
}

// One host without a secret file: the first process creates the directory, which has its own
// secret.
func TestOwnSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases")
	g := fromEnv(t, map[string]string{settings.Store: "file:" + path, settings.TTL: "90s"})
	own, err := filestore.New(path)
	if err != nil {
		t.Fatal(err)
	}
	codec, err := own.Codec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id, _ := g.NewIDs(t.Context())
	if !traceid.Inspect(randflake.NewKeyring(codec), id).Agree ||
		!traceid.Inspect(g.Keyring(), id).Agree {
		t.Error("the ID, or the keyring, is not of the directory's secret")
	}
	if d, err := own.Describe(t.Context()); err != nil || d.LongestTTL != lease.MaxTTL {
		t.Errorf("the store is described as %+v, %v", d, err)
	}
}

// A lease directory is copied with its machine. Once they are told of the restore, copies
// make no IDs with leases of their directories, which grant the same nodes under one secret.
func TestRestoredWithACopy(t *testing.T) {
	reportstest.Collect(t)
	path := filepath.Join(t.TempDir(), "leases")
	// Few blocks, so that the copies take the same one at once.
	d := lease.Description{BlockSize: 32768}
	if s, err := filestore.New(path); err != nil || s.Create(t.Context(), d) != nil {
		t.Fatal(err)
	}
	var machines [2]*setup.IDs
	before := map[string][]byte{}
	files, err := filepath.Glob(filepath.Join(path, "*"))
	for _, f := range files {
		data, readErr := os.ReadFile(f)
		before[f], err = data, errors.Join(err, readErr)
	}
	for i := range machines {
		machines[i] = fromEnv(t, map[string]string{settings.Store: "file:" + path})
		if err := machines[i].Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		for f, data := range before { // as if the other machine had not been there
			err = errors.Join(err, os.WriteFile(f, data, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, ids := range machines {
		ids.OnRestore()
	}
	seen := map[[8]byte]bool{}
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(
		time.Millisecond) {
		for i, ids := range machines {
			id, _ := ids.NewIDs(t.Context())
			low := [8]byte(id[8:])
			if seen[low] {
				t.Fatalf("machine %d: the low half %x occurs twice", i, low)
			}
			seen[low] = true
		}
	}
	if err := machines[0].Ready(t.Context()); !errors.Is(err, filestore.ErrCopied) {
		t.Errorf("ready: %v, want %v", err, filestore.ErrCopied)
	}
}

// A directory that cannot be used now does not prevent a start: it is an unavailable store, and is
// used when it is back.
func TestUnavailableDirectory(t *testing.T) {
	reportstest.Collect(t)
	for what, c := range map[string]struct{ take, giveBack func(path string) error }{
		"not mounted": {func(string) error { return nil },
			func(path string) error { return os.Mkdir(filepath.Dir(path), 0o700) }},
		"a file": {func(path string) error { return os.WriteFile(filepath.Dir(path), nil, 0o600) },
			func(path string) error {
				return errors.Join(os.Remove(filepath.Dir(path)),
					os.Mkdir(filepath.Dir(path), 0o700))
			}},
	} {
		path := filepath.Join(t.TempDir(), "disk", "leases")
		if err := c.take(path); err != nil {
			t.Fatal(err)
		}
		ids := fromEnv(t, map[string]string{settings.Store: "file:" + path})
		id, _ := ids.NewIDs(t.Context())
		if !id.IsValid() || ids.Fallbacks() == 0 || ids.Keyring() != nil {
			t.Errorf("%s: the ID %s, %d fallbacks", what, id, ids.Fallbacks())
		}
		if err := c.giveBack(path); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if err := ids.Ready(ctx); err != nil || ids.Keyring() == nil {
			t.Errorf("%s: when it is back: %v", what, err)
		}
		cancel()
	}
	env(t, map[string]string{settings.Store: "file:" + filepath.Join(t.TempDir(), "none", "leases"),
		settings.Strict: "1"})
	ids, err := setup.FromEnv(t.Context()) // it may be mounted later
	if err != nil {
		t.Fatal(err)
	}
	_ = ids.Shutdown(t.Context())
}

func TestReady(t *testing.T) {
	reportstest.Collect(t)
	for store, want := range map[string]string{
		"":                  "ready\n",
		"setup-test://host": "ready\n",
		"setup-test://away": "setup: not ready: lease: no grant yet: context canceled; the store " +
			"says: lease: acquire: connection refused\n",
	} {
		var vars map[string]string
		if store != "" {
			vars = fleet(t, store)
		}
		g := fromEnv(t, vars)
		probe := func() (int, string) {
			w := httptest.NewRecorder()
			g.ReadyHandler().ServeHTTP(w,
				httptest.NewRequest(http.MethodGet, "/ready", http.NoBody))
			return w.Code, w.Body.String()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		code, text := probe()
		if err := g.Ready(ctx); text != want || (err == nil) != (code == http.StatusOK) ||
			err != nil &&
				(!errors.Is(err, errAway) || !errors.Is(err, context.DeadlineExceeded) ||
					code != http.StatusServiceUnavailable) {
			t.Errorf("%s: %v, %d %s", store, err, code, text)
		}
		// the secret of zero configuration is not available
		if (g.Keyring() == nil) != (store == "") {
			t.Errorf("%s: keyring %v", store, g.Keyring())
		}
		if err := g.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if code, _ := probe(); store != "" && code != http.StatusServiceUnavailable {
			t.Errorf("%s: after Shutdown: %d", store, code)
		}
	}
}

func TestStrict(t *testing.T) {
	reportstest.Collect(t)
	for answer, want := range map[string]error{
		"role": lease.ErrMisconfigured, "newer": lease.ErrSchemaVersion, "absent": lease.ErrNoStore,
		"replaced": lease.ErrReplaced,
		"slow":     lease.ErrMisconfigured,
		"host":     nil, "away": nil, "full": nil,
	} {
		for _, strict := range []string{"1", "0", ""} {
			if answer != "role" && strict != "1" {
				continue
			}
			env(t, fleet(t, "setup-test://u:hunter2@"+answer, settings.Strict, strict))
			g, err := setup.FromEnv(t.Context())
			if strict != "1" {
				want = nil
			}
			if !errors.Is(err, want) || err != nil &&
				(!strings.Contains(err.Error(), "TRACEFLAKE_") ||
					strings.Contains(err.Error(), "hunter2")) {
				t.Errorf("%s, strict %q: %v, want %v", answer, strict, err, want)
			}
			if err == nil {
				err = g.Shutdown(t.Context())
			}
			if want == nil && err != nil || opened.closed != 1 {
				t.Errorf("%s, strict %q: %v; the store was closed %d times", answer, strict, err,
					opened.closed)
			}
		}
	}
}

// A start waits for a second for the store. A strict one waits for the store's first answer, and
// ends with it if retrying cannot help.
func TestStartWaits(t *testing.T) {
	reportstest.Collect(t)
	for _, c := range []struct {
		answer string
		strict bool
		want   time.Duration
	}{
		{"role", true, 0},
		{"slow", true, slowAnswer},
		{"away", true, time.Second},
		{"dead", true, 6 * time.Second},
		{"dead", false, time.Second},
	} {
		config := setup.Config{Store: "setup-test:" + c.answer, SecretFile: file(t, secret),
			Strict: c.strict}
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			ids, err := config.Open(t.Context())
			if took := time.Since(start); took != c.want || (err == nil) != (ids != nil) {
				t.Errorf("%s, strict %v: it took %s, want %s: %v", c.answer, c.strict, took, c.want,
					err)
			}
			if err == nil {
				_ = ids.Shutdown(t.Context())
			}
		})
	}
}

// A context that is over, like that of signal.NotifyContext at a program's end, or that ends soon,
// does not prevent the lease from being given back. A store that hangs keeps such a process for two
// seconds, not forever.
func TestShutdownAfterTheContextIsOver(t *testing.T) {
	reportstest.Collect(t)
	for _, hangs := range []bool{false, true} {
		for _, ends := range []time.Duration{0, time.Second} { // from the call
			ids := fromEnv(t, fleet(t, "setup-test:host"))
			opened.hangs.Store(hangs)
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), ends)
			defer cancel()
			err := ids.Shutdown(ctx)
			took := time.Since(start)
			blocks, listErr := opened.List(t.Context())
			if hangs && (!errors.Is(err, context.DeadlineExceeded) || took < 2*time.Second ||
				took > 10*time.Second) ||
				!hangs && (err != nil || listErr != nil || blocks[0].Owner != "") {
				t.Errorf("hangs: %v, the context ends after %s: %v after %s; %v, %+v", hangs, ends,
					err, took, listErr, blocks)
			}
		}
	}
}

func TestBadValues(t *testing.T) {
	const store = "setup-test://user:hunter2@host"
	dir := t.TempDir()
	own := "file:" + filepath.Join(dir, "leases")
	opened = &fakeStore{url: "none yet"}
	fleet := func(vars ...string) map[string]string { return fleet(t, store, vars...) }
	good, short := fleet()[settings.SecretFile], file(t, secret[:30])
	for _, c := range []struct {
		name string
		vars map[string]string
		want string
	}{
		{"secret without store", map[string]string{settings.SecretFile: good},
			"TRACEFLAKE_SECRET_FILE is set, but TRACEFLAKE_STORE is not"},
		{"TTL without store", map[string]string{settings.TTL: "1m"},
			"TRACEFLAKE_TTL is set, but TRACEFLAKE_STORE is not"},
		{"strict without store", map[string]string{settings.Strict: "1"},
			"TRACEFLAKE_STRICT is set, but TRACEFLAKE_STORE is not"},
		{"store without secret", map[string]string{settings.Store: store},
			"TRACEFLAKE_STORE=setup-test://host: set TRACEFLAKE_SECRET_FILE to the secret file " +
				"that `traceflake lease create` wrote"},
		{"missing secret", fleet(settings.SecretFile, filepath.Join(dir, "none")),
			"TRACEFLAKE_SECRET_FILE: open " + dir},
		{"folder for a secret", fleet(settings.SecretFile, dir), "TRACEFLAKE_SECRET_FILE: read " +
			dir},
		{"bad secret", fleet(settings.SecretFile, short), "TRACEFLAKE_SECRET_FILE: " + short +
			": randflake: invalid keyring: line 1 has 30 characters"},
		{"unknown store", fleet(settings.Store, "redis://user:hunter2@host"),
			"TRACEFLAKE_STORE=redis://host: lease: invalid request: unknown kind of store: its " +
				"URL must begin with one of: file:, "},
		{"store not imported",
			fleet(settings.Store, "postgres://user:hunter2@host/db?sslmode=disable"),
			`TRACEFLAKE_STORE=postgres://host/db: lease: invalid request: unknown kind of store: ` +
				`postgres: import _ "github.com/traceflake/traceflake/lease/pgstore"`},
		{"slash in the password",
			fleet(settings.Store, "etcds://user:hunter2/hunter2@a:1,b:2/prefix"),
			`TRACEFLAKE_STORE=etcds://a:1,b:2/prefix: lease: invalid request: ` +
				`unknown kind of store: etcds: import _ ` +
				`"github.com/traceflake/traceflake/lease/etcdstore"`},
		{"password as a parameter", fleet(settings.Store, "redis://host/db?password=x@hunter2"),
			"TRACEFLAKE_STORE=…: "},
		{"question mark in the password", fleet(settings.Store, "redis://user:hunter2?@host"),
			"TRACEFLAKE_STORE=…: "},
		{"not a URL", fleet(settings.Store, "host=db password=hunter2"),
			"TRACEFLAKE_STORE=…: lease: invalid request: unknown kind of store"},
		{"not a URL, although it looks like one",
			fleet(settings.Store, "host=h password=hu://hunter2"),
			"TRACEFLAKE_STORE=…: lease: invalid request: unknown kind of store"},
		{"driver refuses", fleet(settings.Store, "setup-test://refuse"),
			"TRACEFLAKE_STORE=setup-test://refuse: lease: invalid request: the URL: the driver " +
				"refuses"},
		{"TTL too short", fleet(settings.TTL, "1999ms"),
			"TRACEFLAKE_TTL=1.999s: want a duration from 2s to 24h"},
		{"TTL too long", fleet(settings.TTL, "24h0m1s"),
			"TRACEFLAKE_TTL=24h0m1s: want a duration from 2s to 24h"},
		{"TTL without a unit", fleet(settings.TTL, "10"),
			`TRACEFLAKE_TTL="10": want a duration from 2s to 24h`},
		{"TTL of zero", fleet(settings.TTL, "0s"),
			`TRACEFLAKE_TTL="0s": want a duration from 2s to 24h`},
		{"undecided", fleet(settings.Strict, "perhaps"),
			`TRACEFLAKE_STRICT="perhaps": want 1 or 0`},
		{"a directory with a fleet's secret",
			map[string]string{settings.Store: own, settings.SecretFile: good},
			"has a secret of its own; unset this variable"},
		{"a directory without a path", map[string]string{settings.Store: "file:"},
			"the path is empty"},
	} {
		env(t, c.vars)
		g, err := setup.FromEnv(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
			continue
		}
		if g != nil || opened.url == c.vars[settings.Store] && opened.closed != 1 {
			t.Errorf("%s: got a generator: %v; the store was closed %d times", c.name, g != nil,
				opened.closed)
		}
		path := c.vars[settings.SecretFile]
		if text := err.Error(); path != "" && strings.Count(text, path) > 1 ||
			strings.Contains(text, "hunter2") || strings.Contains(text, secret[:8]) {
			t.Errorf("%s: it repeats the path, or shows a secret: %s", c.name, text)
		}
	}
	for _, made := range []string{"leases", "missing"} {
		if _, err := os.Stat(filepath.Join(dir, made)); err == nil {
			t.Errorf("a bad configuration created %s", made)
		}
	}
}

// A variable that nothing reads is reported once, without its value. Kubernetes sets some for a
// Service.
func TestUnknownVariables(t *testing.T) {
	t.Setenv("TRACEFLAKE_STROE", "hunter2")
	errs := reportstest.Collect(t)
	fromEnv(t, nil)
	if got := errs(); len(got) != 1 || !strings.Contains(got[0].Error(), "TRACEFLAKE_STROE") ||
		strings.Contains(got[0].Error(), "hunter2") {
		t.Errorf("reported %v", got)
	}
}

// A secret file that every user may read is reported once, and used.
func TestReadableSecret(t *testing.T) {
	for mode, want := range map[os.FileMode]int{0o644: 1, 0o604: 1, 0o640: 0, 0o400: 0} {
		vars := fleet(t, "setup-test://host")
		path := vars[settings.SecretFile]
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		errs := reportstest.Collect(t)
		fromEnv(t, vars)
		got := errs()
		text := errors.Join(got...)
		if len(got) != want || want > 0 && (!strings.Contains(text.Error(), path) ||
			!strings.Contains(text.Error(), "chmod")) {
			t.Errorf("mode %s: reported %v, want %d", mode, got, want)
		}
	}
}

// Both the generator and the leases use the provider of the Config.
func TestMeterProvider(t *testing.T) {
	for _, c := range []setup.Config{{},
		{Store: "setup-test://host", SecretFile: file(t, secret)}} {
		reader := metric.NewManualReader()
		c.MeterProvider = metric.NewMeterProvider(metric.WithReader(reader))
		ids, err := c.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		series := metrictest.Collect(t, reader)
		_, generator := series["traceflake.id.borrowed s"]
		_, leases := series["traceflake.lease.blocks {block}"]
		if !generator || leases != (c.Store != "") {
			t.Errorf("%q has the metrics %v", c.Store, series)
		}
		if err := ids.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestLevel(t *testing.T) {
	for err, want := range map[error]slog.Level{
		reports.Recovered("lease: recovered"):    slog.LevelInfo,
		errAway:                                  slog.LevelWarn,
		fmt.Errorf("x: %w", lease.ErrNoStore):    slog.LevelError,
		fmt.Errorf("x: %w", setup.ErrConfig):     slog.LevelError,
		fmt.Errorf("x: %w", lease.ErrNoFreeNode): slog.LevelWarn,
	} {
		if got := setup.Level(err); got != want {
			t.Errorf("%v has the level %s, want %s", err, got, want)
		}
	}
}

// No method of a zero value panics, and none waits. sparx64's methods get a block, since they panic
// without a block, as those of crypto/cipher do.
func TestZeroValues(t *testing.T) {
	reportstest.Collect(t)
	values := []any{
		new(sparx64.Cipher),
		new(randflake.Codec), new(randflake.Generator), new(randflake.ID), new(randflake.Keyring),
		new(idgen.Generator), new(traceid.Verifier), new(setup.IDs), new(setup.Config),
		new(lease.Keeper), new(driver.Memory), new(lease.Grant), new(lease.Description),
		new(driver.Busy),
		new(clickhouse.Schema), new(clickhouse.Query), new(clickhouse.Plan),
		new(clickhouse.Adoption),
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	argument := map[reflect.Type]func() any{
		reflect.TypeFor[context.Context](): func() any { return ctx },
		reflect.TypeFor[*sql.DB]():         func() any { return sql.OpenDB(noServer{}) },
		reflect.TypeFor[[]byte]():          func() any { return make([]byte, sparx64.BlockSize) },
		reflect.TypeFor[[]uint64]():        func() any { return make([]uint64, 1) },
		reflect.TypeFor[[]randflake.ID]():  func() any { return make([]randflake.ID, 3) },
	}
	for _, v := range values {
		typ := reflect.TypeOf(v)
		for i := range typ.NumMethod() {
			method := typ.Method(i)
			if method.Name == "Format" { // fmt calls it
				_ = fmt.Sprint(v)
				continue
			}
			args := []reflect.Value{reflect.New(typ.Elem())}
			in := method.Type.NumIn()
			if method.Type.IsVariadic() {
				in--
			}
			for j := 1; j < in; j++ {
				arg := reflect.Zero(method.Type.In(j))
				if f := argument[method.Type.In(j)]; f != nil {
					arg = reflect.ValueOf(f())
				}
				args = append(args, arg)
			}
			func() {
				defer func() {
					if problem := recover(); problem != nil {
						t.Errorf("%s.%s panics: %v", typ, method.Name, problem)
					}
				}()
				method.Func.Call(args)
			}()
			if ctx.Err() != nil {
				t.Fatalf("%s.%s waits", typ, method.Name)
			}
		}
	}
}

// noServer is a database that cannot be reached.
type noServer struct{}

func (noServer) Connect(context.Context) (sqldriver.Conn, error) { return nil, errAway }
func (noServer) Driver() sqldriver.Driver                        { return nil }
