package fleet_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/fleet"
)

func TestBadValues(t *testing.T) {
	dir := t.TempDir()
	good, short := file(t, secret), file(t, secret[:30])
	opened = &fakeStore{}
	const alone = "TRACEFLAKE_STORE is not set, but one of"
	for _, c := range []struct {
		name, store, secretFile string
		variable, value         string // another one
		want                    string
	}{
		{"secret file without store", "", good, "", "", alone},
		{"secret without store", "", "", "SECRET", secret, alone},
		{"TTL without store", "", "", "TTL", "1m", alone},
		{"strict without store", "", "", "STRICT", "1", alone},
		// In the place of the secret is a path, an address, or the base64 of one.
		{"a path", "", "", "SECRET", "/run/secrets/traceflake", "; set it as TRACEFLAKE_SECRET_FI"},
		{"an address", "", "", "SECRET", "k8s://a:hunter2@b", "; set it as TRACEFLAKE_STORE"},
		{"base64", "", "", "SECRET", base64.StdEncoding.EncodeToString([]byte(secret)),
			"; decode it from base64"},
		{"two places for the secret", "fleet-test://h", good, "SECRET", secret,
			"TRACEFLAKE_SECRET and TRACEFLAKE_SECRET_FILE are set: set one of them"},
		{"bad secret", "fleet-test://h", "", "SECRET", secret + " " + secret[:30],
			"TRACEFLAKE_SECRET: randflake: invalid keyring: line 1 has a secret of 30 characters"},
		{"store without secret", "fleet-test://h", "", "", "", "no secret; set TRACEFLAKE_SECRET" +
			"_FILE (or --secret-file) or TRACEFLAKE_SECRET to the secret that `traceflake lease " +
			"create` wrote"},
		{"missing secret file", "fleet-test://h", dir + "/none", "", "",
			"TRACEFLAKE_SECRET_FILE: open " + dir},
		{"folder for a secret file", "fleet-test://h", dir, "", "",
			"TRACEFLAKE_SECRET_FILE: read " + dir},
		{"bad secret file", "fleet-test://h", short, "", "", "TRACEFLAKE_SECRET_FILE: " + short +
			": randflake: invalid keyring: line 1 has a secret of 30 characters"},
		{"unknown store", "redis://user:hunter2@host", good, "", "", "TRACEFLAKE_STORE=redis://" +
			"host: unknown kind of store: its URL must begin with one of: file:, "},
		{"driver refuses", "fleet-test://refuse", good, "", "",
			"TRACEFLAKE_STORE=fleet-test://refuse: the driver refuses"},
		{"TTL too short", "fleet-test://h", good, "TTL", "1999ms",
			"TRACEFLAKE_TTL=1.999s: want a duration from 2s to 24h"},
		{"TTL too long", "fleet-test://h", good, "TTL", "24h0m1s",
			"TRACEFLAKE_TTL=24h0m1s: want a duration from 2s to 24h"},
		{"TTL without a unit", "fleet-test://h", good, "TTL", "10",
			`TRACEFLAKE_TTL="10": want a duration from 2s to 24h`},
		{"TTL of zero", "fleet-test://h", good, "TTL", "0s",
			`TRACEFLAKE_TTL="0s": want a duration from 2s to 24h`},
		{"undecided", "fleet-test://h", good, "STRICT", "perhaps",
			`TRACEFLAKE_STRICT="perhaps": want 1 or 0`},
		{"a directory without a path", "file:", "", "", "",
			"want file: and the whole path of a directory"},
	} {
		env(t, map[string]string{"TRACEFLAKE_STORE": c.store,
			"TRACEFLAKE_SECRET_FILE": c.secretFile})
		if c.variable != "" {
			t.Setenv("TRACEFLAKE_"+c.variable, c.value)
		}
		ids, err := fleet.FromEnv(t.Context())
		text := fmt.Sprint(lease.Advise(err))
		if ids != nil || !strings.Contains(text, c.want) || opened.url != "" && !opened.closed {
			t.Errorf("%s: got %v, want %q; the store is closed: %v", c.name, err, c.want,
				opened.closed)
		}
		if c.secretFile != "" && strings.Count(text, c.secretFile) > 1 ||
			strings.Contains(text, "hunter2") || strings.Contains(text, secret[:8]) {
			t.Errorf("%s: it repeats the path, or shows a secret: %s", c.name, text)
		}
	}
}

// A secret in a wrong place is neither returned nor reported, in each variable and form. The right
// place is named.
func TestMisplacedSecret(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, value := range map[string]string{"hex": secret, "a file": "# it\n" + secret + "\n",
		"base64": "/3/9YCG7K9Wwr2dikIlDuA6wo5/9YCG7K9Wwr2dikIk=", "quoted": `"` + secret + `"`,
		"a URL": "fleet-test://u:" + secret + "@away", "a directory": "file:" + secret} {
		for _, variable := range []string{"TRACEFLAKE_STORE", "TRACEFLAKE_SECRET_FILE",
			"TRACEFLAKE_TTL", "TRACEFLAKE_STRICT", "TRACEFLAKE_SECRET"} {
			env(t, map[string]string{"TRACEFLAKE_STORE": "fleet-test://host",
				"TRACEFLAKE_STRICT": "1", variable: value})
			if !strings.HasPrefix(variable, "TRACEFLAKE_SECRET") {
				t.Setenv("TRACEFLAKE_SECRET", secret)
			}
			errs := reportstest.Collect(t)
			ids, err := fleet.FromEnv(t.Context())
			if ids != nil {
				over, cancel := context.WithCancel(t.Context())
				cancel() // so that Ready does not wait
				err = errors.Join(err, ids.Ready(over), ids.Shutdown(over))
			}
			text := fmt.Sprint(err, errs())
			for i := range len(value) - 11 {
				if part := value[i : i+12]; strings.Contains(text, part) &&
					!strings.Contains(part, ":/") {
					t.Fatalf("%s in %s: %q is in %s", name, variable, part, text)
				}
			}
			if variable == "TRACEFLAKE_SECRET_FILE" && name == "hex" &&
				!strings.Contains(text, "set it as TRACEFLAKE_SECRET,") {
				t.Errorf("%s in %s: %s", name, variable, text)
			}
		}
	}
}

// The bounds of each value are valid, and spaces around a value are ignored.
func TestBounds(t *testing.T) {
	for want, values := range map[fleet.Config][2]string{
		{Store: "file:/x", TTL: 2 * time.Second, Strict: true}: {" 2s", "true\n"},
		{Store: "file:/x", TTL: lease.MaxTTL}:                  {"1d", "0"},
	} {
		env(t, map[string]string{"TRACEFLAKE_STORE": " file:/x\n", "TRACEFLAKE_SECRET_FILE": " ",
			"TRACEFLAKE_TTL": values[0], "TRACEFLAKE_STRICT": values[1]})
		if got, err := fleet.Env(); got != want || errors.Join(err, got.Check()) != nil {
			t.Errorf("%q: got %+v, %v, %v", values, got, err, got.Check())
		}
	}
	env(t, map[string]string{"TRACEFLAKE_TTL": "x", "TRACEFLAKE_STRICT": " 1"})
	if got, err := fleet.Env(); err == nil || !got.Strict {
		t.Errorf("with an invalid TTL: %+v, %v, want a strict error", got, err)
	}
}

// Variables that nothing reads are reported once, without their values. Kubernetes sets some for a
// Service.
func TestUnknownVariables(t *testing.T) {
	want := []string{"TRACEFLAKE_", "TRACEFLAKE_COLOR", "TRACEFLAKE_SECRETS"}
	for _, name := range append(want, "TRACEFLAKE_CLICKHOUSE_DSN", "TRACEFLAKE_SERVICE_HOST",
		"TRACEFLAKE_PORT_80_TCP_ADDR", "TRACEFLAKE_WEB_SERVICE_PORT", "TRACEFLAKE_WEB_PORT",
		"TRACEFLAKESTORE", "OTEL_TRACEFLAKE_STORE_SECRET") {
		t.Setenv(name, "hunter2")
	}
	env(t, nil)
	errs := reportstest.Collect(t)
	_, err := fleet.Env()
	got := errs()
	for _, name := range want {
		if text := fmt.Sprint(got); !strings.Contains(text, name+" is not known") ||
			len(got) != len(want) || strings.Contains(text, "hunter2") || err != nil {
			t.Errorf("reported %v, want one report of each of %q: %v", got, want, err)
		}
	}
}

// A secret file that every user may read is reported once, and used.
func TestReadableSecret(t *testing.T) {
	for mode, want := range map[os.FileMode]int{0o644: 1, 0o604: 1, 0o640: 0, 0o400: 0} {
		path := file(t, secret)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		errs := reportstest.Collect(t)
		open(t, fleet.Config{Store: "fleet-test://host", SecretFile: path})
		got := errs()
		text := fmt.Sprint(got)
		if len(got) != want || want > 0 && (!strings.Contains(text, path) ||
			!strings.Contains(text, "chmod")) {
			t.Errorf("mode %s: reported %v, want %d", mode, got, want)
		}
	}
}
