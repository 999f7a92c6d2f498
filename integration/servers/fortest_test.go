package servers

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// outcome records what need does to a test.
type outcome struct {
	testing.TB
	skipped, failed bool
}

func (o *outcome) Helper()      {}
func (o *outcome) Skip(...any)  { o.skipped = true }
func (o *outcome) Fatal(...any) { o.failed = true }

func TestNotInstalled(t *testing.T) {
	t.Setenv("TRACEFLAKE_POSTGRES_DSN", "")
	t.Setenv("TRACEFLAKE_ENGINES", t.TempDir())
	_, err := Postgres(t.Context())
	if !errors.Is(err, ErrNotInstalled) || !strings.Contains(err.Error(), "make engines") {
		t.Fatalf("got %v, want ErrNotInstalled and what to run", err)
	}
	for _, c := range []struct {
		ci   string
		err  error
		want outcome
	}{
		{"", nil, outcome{}},
		{"", err, outcome{skipped: true}},
		{"", errors.New("does not start"), outcome{failed: true}},
		{"true", err, outcome{failed: true}},
	} {
		t.Setenv("CI", c.ci)
		var got outcome
		need(&got, c.err)
		if got != c.want {
			t.Errorf("CI=%q, error %v: %+v, want %+v", c.ci, c.err, got, c.want)
		}
	}
}

func TestDataFolderNotWritable(t *testing.T) {
	t.Setenv("TMPDIR", "/dev/null/no")
	_, err := dataFolder("traceflake-test-")
	if err == nil || !strings.Contains(err.Error(), "/dev/null/no") || !strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("got %v, want the folder and the variable that names it", err)
	}
}

// What a killed process left behind is removed, but no folder in use, however old.
func TestDataFolder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	used, err := dataFolder("traceflake-test-")
	left := filepath.Join(os.TempDir(), "traceflake-test-left")
	days := time.Now().Add(-72 * time.Hour)
	if err := errors.Join(err, os.Mkdir(left, 0o700), os.Chtimes(left, days, days), os.Chtimes(used, days, days)); err != nil {
		t.Fatal(err)
	}
	next, err := dataFolder("traceflake-test-")
	if err != nil {
		t.Fatal(err)
	}
	if found, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(found) != 2 || !slices.Contains(found, used) || !slices.Contains(found, next) {
		t.Errorf("%q are there, want %s and %s", found, used, next)
	}
}

func TestStatements(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT 1": "SELECT", " \n-- c\n/* x\n */ insert INTO t": "INSERT", "(SELECT 1)": "", "-- only": "",
	} {
		if got := keyword(sql); got != want {
			t.Errorf("keyword(%q) = %q, want %q", sql, got, want)
		}
	}
	for sql, want := range map[string]string{
		"SELECT 1":              "Native",
		"SELECT 1 format JSON;": "JSON",
		"SELECT 1 FORMAT CSV SETTINGS max_threads = 1": "CSV",
		"SELECT ' FORMAT CSV'":                         "Native",
	} {
		if got := outputFormat(sql, "Native"); got != want {
			t.Errorf("outputFormat(%q) = %q, want %q", sql, got, want)
		}
	}
	for sql, want := range map[string][2]string{
		"INSERT INTO t (a) FORMAT Native": {"INSERT INTO t (a)", "Native"},
		"insert into t values":            {"insert into t", "Values"},
		"INSERT INTO t VALUES (1)":        {},
		"INSERT INTO t SELECT 1":          {},
		"SELECT 1 FORMAT Native":          {},
	} {
		statement, format, ok := splitInsert(sql)
		if [2]string{statement, format} != want || ok != (want[1] != "") {
			t.Errorf("splitInsert(%q) = %q, %q, %v; want %q", sql, statement, format, ok, want)
		}
	}
}
