package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/setup"
)

// What an operator may get wrong, and which command the doctor says mends it.
func TestDoctor(t *testing.T) {
	command(t, "", "doctor").want(t, 0, "zero configuration", "")
	url, _ := newServer(t, time.Now)
	secret := filepath.Join(t.TempDir(), "secret")
	doctor := func(args ...string) result {
		return command(t, "", append([]string{"doctor", "--store", url}, args...)...)
	}

	doctor("--secret-file", write(t, "any", secretA)).want(t, 1, "traceflake lease create", "")
	doctor().want(t, 1, "no secret file", "")
	command(t, "", "lease", "create", "--store", url, "--secret-file", secret).want(t, 0, something, "")
	doctor("--secret-file", secret).want(t, 0, "0 of 16384 blocks are taken", "")
	doctor("--secret-file", secret).want(t, 0, "agrees with the store's", "")
	doctor("--secret-file", write(t, "other", secretA)).want(t, 1, "traceflake lease secret add", "")
	doctor("--secret-file", write(t, "short", secretA[:30])).want(t, 1, "line 1 has 30 characters", "")
	command(t, "", "doctor", "--store", "redis://user:hunter2@h").want(t, 1, "unknown kind of store", "")

	t.Setenv("TRACEFLAKE_STROE", "x")
	r := doctor("--secret-file", secret, "-o", "json")
	r.want(t, 1, `"check":"environment","ok":false,"found":"nothing reads TRACEFLAKE_STROE"`, "has no effect")
	for _, line := range lines(r.out) {
		var f finding
		if err := json.Unmarshal([]byte(line), &f); err != nil || f.Check == "" || f.Found == "" || f.OK == (f.Fix != "") {
			t.Errorf("%s: %v", line, err)
		}
	}
	if err := os.Unsetenv("TRACEFLAKE_STROE"); err != nil {
		t.Fatal(err)
	}

	now = func() time.Time { return time.Now().Add(3 * time.Hour) }
	defer func() { now = time.Now }()
	doctor("--secret-file", secret).want(t, 1, "this machine is 3h", "")
	now = time.Now

	command(t, "", "lease", "raise", "--store", url).want(t, 0, something, "")
	doctor("--secret-file", secret).want(t, 1, "nothing is granted before ", "")

	store, s := bolt(t)
	command(t, "", "doctor", "--store", store).want(t, 0, "the file's own", "")
	for range 2 {
		if _, err := s.Acquire(t.Context(), lease.Request{Nonce: lease.NewNonce(), Now: time.Now(), TTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	command(t, "", "doctor", "--store", store).want(t, 0, "2 of 16384 blocks are taken", "")
	missing := "bolt:" + filepath.Join(t.TempDir(), "leases.db")
	command(t, "", "doctor", "--store", missing, "--secret-file", secret).want(t, 1, "unset TRACEFLAKE_SECRET_FILE", "")
	command(t, "", "doctor", "--store", missing).want(t, 0, "the first process that uses it creates it", "")
	if _, err := os.Stat(strings.TrimPrefix(missing, "bolt:")); err == nil {
		t.Error("the doctor created a file")
	}
	t.Setenv(setup.TTLVar, "1s")
	command(t, "", "doctor").want(t, 1, "TRACEFLAKE_TTL=1s", "")
}
