package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

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
