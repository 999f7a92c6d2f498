package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	chgo "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/setup"
)

// Each row of the table is the advice for some error, and none of them loses anything.
func TestAdvice(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	seen := make(map[string]bool)
	for _, c := range []struct {
		err  error
		want string
	}{
		{lease.ErrNoStore, "traceflake lease create, if none ever was there"},
		{lease.ErrRaising, "repeat traceflake lease raise"},
		{lease.ErrMoved, "traceflake lease raise --moved-here"},
		{lease.ErrReplaced, "secret file of the store that is there now"},
		{lease.ErrWrongSecret, "traceflake lease secret add"},
		{lease.ErrClockAhead, "set this machine's clock"},
		{randflake.ErrInvalidKeyring, "correct that line"},
		{driver.ErrEdited, "put back what the object had"},
		{lease.ErrSchemaVersion, "install that version"},
		{lease.ErrInvalidRequest, "correct TRACEFLAKE_STORE"},
		{syscall.EROFS, "read-only"},
		{errors.New("the server is read-only, a standby perhaps"), "connect to the primary"},
		{syscall.ENOSPC, "free some space"},
		{syscall.EISDIR, "correct the path"},
		{fs.ErrPermission, "let the user of the services read and write there"},
		{fs.ErrNotExist, "create what the error names"},
		{errors.New("tls: first record does not look like a TLS handshake"), "one side uses TLS"},
		{errors.New("x509: certificate signed by unknown authority"), "not trusted"},
		{refused, "nothing listens there"},
		{&net.DNSError{Err: "no such host", IsNotFound: true}, "correct the host name"},
		{fmt.Errorf("%w (transport: connection refused)", context.DeadlineExceeded),
			"nothing listens there"},
		{fmt.Errorf("%w (transport: no such host)", context.DeadlineExceeded),
			"correct the host name"},
		{&chgo.Exception{Code: 516}, "user and password"},
		{&chgo.Exception{Code: 497}, "grant"},
		{&chgo.Exception{Code: 81}, "create the database"},
		{&chgo.Exception{Code: 60}, "traceflake clickhouse create"},
		{&chgo.Exception{Code: 159}, "overloaded"},
		{errors.New("clickhouse: otel_traces is the exporter's"), "adopt prepare"},
		{errors.New("clickhouse: there is no table otel_traces"), "traceflake clickhouse create"},
		{errors.New("the file is locked by another process"), "wait"},
		{lease.ErrMisconfigured, "do what the error says"},
		{context.DeadlineExceeded, "nothing answers there"},
		{errors.New("something else"), "keep everything as it is"},
	} {
		got := advise(fmt.Errorf("package: call: %w", c.err))
		if !strings.Contains(got, c.want) {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
		seen[got] = true
	}
	loses := regexp.MustCompile(`\b(move|delete|remove|drop|truncate)\b`)
	for _, a := range advices {
		if !seen[a.fix] {
			t.Errorf("no error of the test has the advice %q", a.fix)
		}
		if loses.MatchString(a.fix) {
			t.Errorf("%q may lose something", a.fix)
		}
	}
}

// A server that accepts connections and never answers holds no check for longer than 5 s, and the
// command for as long as one check.
func TestDoctorEnds(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "a",
		"AWS_SECRET_ACCESS_KEY": "b", "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, value)
	}
	at, secret := silent.Addr().String(), write(t, "secret", secretA)
	var all sync.WaitGroup
	for _, args := range [][]string{
		{"--store", "postgres://u:p@" + at + "/db", "--secret-file", secret},
		{"--store", "etcd://" + at, "--secret-file", secret},
		{"--store", "etcd://u:p@" + at, "--secret-file", secret},
		{"--store", "k8s://a/b?server=http://" + at, "--secret-file", secret},
		{"--store", "s3://bucket/p?region=r&endpoint=http://" + at, "--secret-file", secret},
		{"--dsn", "http://" + at + "/otel"},
		{"--dsn", "clickhouse://" + at + "/otel"},
	} {
		all.Go(func() {
			began := time.Now()
			r := command(t, "", append([]string{"doctor"}, args...)...)
			if took := time.Since(began); r.code != 1 || took > checkTimeout+3*time.Second ||
				!strings.Contains(r.out, "nothing answers there") {
				t.Errorf("%q: code %d after %s\n%s%s", args, r.code, took, r.out, r.errOut)
			}
		})
	}
	all.Wait()
	// The cause survives, although a client tries again until the end.
	if err := silent.Close(); err != nil {
		t.Fatal(err)
	}
	for _, store := range []string{"etcd://" + at, "postgres://u:p@" + at + "/db"} {
		command(t, "", "doctor", "--store", store, "--secret-file", secret).want(t, 1,
			"connection refused", "")
	}
}

// What a service would do without is wrong: a secret that everybody can read, a TTL that the store
// shortens, a variable that nothing reads.
func TestDoctorIsNotGreen(t *testing.T) {
	store, _ := newServer(t, time.Now)
	secret := t.TempDir() + "/secret"
	t.Setenv(setup.StoreVar, store)
	t.Setenv(setup.SecretFileVar, secret)
	command(t, "", "lease", "create").want(t, 0, something, "")
	command(t, "", "doctor").want(t, 0, "rights", "")
	if err := os.Chmod(secret, 0o644); err != nil {
		t.Fatal(err)
	}
	command(t, "", "doctor").want(t, 1, "every user of this machine can read the secret", "")
	command(t, "", "doctor", "-o", "json").want(t, 1, `"check":"secret","ok":false`, "")
	if err := os.Chmod(secret, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(setup.TTLVar, "1h")
	command(t, "", "doctor").want(t, 1, "TRACEFLAKE_TTL=1h, and the store grants 10m at most", "")
	t.Setenv(setup.TTLVar, "")
	t.Setenv("TRACEFLAKE_SECRETFILE", "x")
	command(t, "", "doctor").want(t, 1,
		"TRACEFLAKE_SECRETFILE (did you mean TRACEFLAKE_SECRET_FILE?)", "has no effect")
}

// A store of which objects are truncated or gone is not green: the error contains which, and what
// to do. In a directory that has lost its configuration, no process would create another store.
func TestDoctorSeesLosses(t *testing.T) {
	for what, c := range map[string]struct {
		change func(dir string) error
		want   []string
	}{
		"nothing": {func(string) error { return nil }, nil},
		"a truncated page": {func(dir string) error { return os.Truncate(dir+"/page-0003", 40) },
			[]string{"page-0003", "put back what the object had"}},
		"an empty page": {func(dir string) error { return os.Truncate(dir+"/page-0003", 0) },
			[]string{"page-0003 is empty", "put back what the object had"}},
		"an empty configuration": {func(dir string) error { return os.Truncate(dir+"/config", 0) },
			[]string{"config is empty", "put back what the object had"}},
		"a truncated configuration": {func(
			dir string) error {
			return os.Truncate(dir+"/config", 40)
		},
			[]string{"config", "put back what the object had"}},
		"a lost page": {func(dir string) error { return os.Remove(dir + "/page-0003") },
			[]string{`"page-0003" is gone`, "put back what the object had"}},
		"a lost configuration": {func(dir string) error { return os.Remove(dir + "/config") },
			[]string{`"config" is gone`, "put back what the object had"}},
		"lost pages": {func(dir string) error {
			pages, err := filepath.Glob(dir + "/page-*")
			for _, page := range pages[len(pages)/2:] {
				err = errors.Join(err, os.Remove(page))
			}
			return err
		}, []string{"is gone", "put back what the object had"}},
	} {
		t.Run(what, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "leases")
			store := "file:" + dir
			if _, err := driver.Ensure(t.Context(),
				opened(t, store).(driver.Embedded)); err != nil {
				t.Fatal(err)
			}
			if err := c.change(dir); err != nil {
				t.Fatal(err)
			}
			r := command(t, "", "doctor", "--store", store)
			if (r.code == 0) != (c.want == nil) {
				t.Errorf("code %d\n%s%s", r.code, r.out, r.errOut)
			}
			for _, text := range c.want {
				if !strings.Contains(r.out, text) {
					t.Errorf("doctor does not say %q:\n%s%s", text, r.out, r.errOut)
				}
			}
		})
	}
}
