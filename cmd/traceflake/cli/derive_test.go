package cli

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// Go and the ports derive the same IDs.
func TestDerived(t *testing.T) {
	var vectors struct {
		Derived []struct {
			Name, Secret, Key, Trace, Span, Wrong string
			UnixMS                                int64 `json:"unix_ms"`
		}
	}
	text, err := os.ReadFile("../../../testdata/format.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &vectors); err != nil || len(vectors.Derived) < 2 {
		t.Fatalf("%d vectors, %v", len(vectors.Derived), err)
	}
	for _, v := range vectors.Derived {
		secret, err := hex.DecodeString(v.Secret)
		if err != nil {
			t.Fatal(err)
		}
		codec, err := randflake.NewCodec(secret)
		if err != nil {
			t.Fatal(err)
		}
		for span, want := range map[bool]string{false: v.Trace, true: v.Span} {
			got, err := derived(codec, time.UnixMilli(v.UnixMS).Add(999_999), v.Key, span)
			switch {
			case v.Wrong == "time":
				if !errors.Is(err, traceid.ErrOutOfRange) {
					t.Errorf("%s: %v, %v, want an error about the time", v.Name, got, err)
				}
			case v.Wrong == "key":
				if !errors.Is(err, errNoKey) {
					t.Errorf("%s: %v, %v, want %v", v.Name, got, err, errNoKey)
				}
			case err != nil || got.String() != want:
				t.Errorf("%s: %v, %v, want %s", v.Name, got, err, want)
			}
		}
	}
}

// The recipe for a CI run works verbatim, and a derived ID is that of the recipe's key.
func TestRecipeForCI(t *testing.T) {
	page, err := os.ReadFile("../../../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, script, _ := strings.Cut(string(page), "```sh\nexport TRACEFLAKE_SECRET_FILE")
	script, _, found := strings.Cut(script, "```")
	if !found {
		t.Fatal("docs/recipes.md has no recipe for CI")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin, secret := t.TempDir(), write(t, "secret", secretA)
	if err := os.Symlink(self, filepath.Join(bin, "traceflake")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-euc",
		"export TRACEFLAKE_SECRET_FILE"+script+`echo "$TRACEPARENT $root"`)
	cmd.Env = append(os.Environ(), asCommand+"=1", "PATH="+bin+":"+os.Getenv("PATH"),
		"RUNNER_TEMP="+filepath.Dir(secret), "RUN_STARTED_AT=2026-11-23T06:00:00Z",
		"GITHUB_JOB=test",
		"GITHUB_REPOSITORY=shop", "GITHUB_RUN_ID=17", "GITHUB_RUN_ATTEMPT=1")
	out, err := cmd.CombinedOutput()
	// Those of the vectors "a run of a workflow" and "a job of the run".
	const want = "00-19544b3f8029c388e2ba3b98fb0ecd26-b98305ba4f24e8d6-01 a1e2bccc30d3391c\n"
	if err != nil || string(out) != want {
		t.Errorf("%q, %v, want %q", out, err, want)
	}
}
