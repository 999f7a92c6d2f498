package main_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPasswords runs commands with addresses whose passwords have a reserved character, not
// escaped, at each position. Whatever a client makes of such an address, no output contains four
// characters in a row of the password. Nothing answers at the addresses.
func TestPasswords(t *testing.T) {
	program := filepath.Join(t.TempDir(), "traceflake")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	commands := []struct{ variable, address, command string }{
		{"TRACEFLAKE_STORE", "postgres://app:PASSWORD@127.0.0.1:1/db", "lease list"},
		{"TRACEFLAKE_STORE", "postgres://app:PASSWORD@127.0.0.1:1/db", "doctor"},
		{"TRACEFLAKE_STORE", "s3://key:PASSWORD@bucket/prefix?region=x", "lease list"},
		{"TRACEFLAKE_STORE", "k8s://user:PASSWORD@namespace", "doctor"},
		{"TRACEFLAKE_CLICKHOUSE_DSN", "clickhouse://app:PASSWORD@127.0.0.1:1/otel",
			"clickhouse status"},
		{"TRACEFLAKE_CLICKHOUSE_DSN", "http://app:PASSWORD@127.0.0.1:1/otel", "doctor"},
	}
	for _, reserved := range "@#/?%:[" {
		for position := range 12 {
			password := make([]rune, 12)
			for i := range password {
				password[i] = rune(letters[rand.IntN(len(letters))])
			}
			password[position] = reserved
			c := commands[rand.IntN(len(commands))]
			address := strings.Replace(c.address, "PASSWORD", string(password), 1)
			cmd := exec.CommandContext(t.Context(), program, strings.Fields(c.command)...)
			cmd.Dir = t.TempDir()
			cmd.Env = append(os.Environ(), c.variable+"="+address,
				"TRACEFLAKE_SECRET_FILE="+filepath.Join(cmd.Dir, "secret"))
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Errorf("%s=%s %s: no error", c.variable, address, c.command)
			}
			for i := range len(password) - 3 {
				if part := string(password[i : i+4]); strings.Contains(string(out), part) {
					t.Fatalf("%s=%s %s: %q is in the output: %s", c.variable, address, c.command,
						part, out)
				}
			}
		}
	}
}
