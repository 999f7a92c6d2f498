package main_test

import (
	"encoding/base64"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// build returns the command.
func build(t *testing.T) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "traceflake")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// A secret in a wrong place is not shown: in each variable and flag, in each form that people have
// for one, by each command.
func TestMisplacedSecrets(t *testing.T) {
	program, secret := build(t), make([]byte, 32)
	for i := range secret {
		secret[i] = byte(rand.IntN(256))
	}
	in64 := base64.StdEncoding.EncodeToString(secret)
	forms := map[string]string{
		"hex":             hex.EncodeToString(secret[:16]),
		"two":             hex.EncodeToString(secret[:16]) + " " + hex.EncodeToString(secret[16:]),
		"base64":          in64,
		"a path":          "/" + in64,
		"a file":          "# the secret\n" + hex.EncodeToString(secret[:16]) + "\n",
		"quoted":          `"` + hex.EncodeToString(secret[:16]) + `"`,
		"YAML":            "secret: " + in64,
		"the URL":         "postgres://app:" + hex.EncodeToString(secret[:16]) + "@127.0.0.1:1/db",
		"the wrong place": "file:" + hex.EncodeToString(secret[:16]),
	}
	settings := []string{"TRACEFLAKE_STORE", "TRACEFLAKE_SECRET_FILE", "TRACEFLAKE_SECRET",
		"TRACEFLAKE_TTL", "TRACEFLAKE_STRICT", "TRACEFLAKE_CLICKHOUSE_DSN", "TRACEFLAKE_VMCLOCK",
		"TRACEFLAKE_TYPO", "--store", "--secret-file", "--dsn", "--ttl", "-o", "-store"}
	commands := []string{"doctor", "doctor -o json", "lease list", "lease create",
		"clickhouse status", "inspect -o json 1950fb0f8880000086cdcca4ab608495"}
	for name, value := range forms {
		for _, setting := range settings {
			args := strings.Fields(commands[rand.IntN(len(commands))])
			env := append(os.Environ(), "TRACEFLAKE_STORE=postgres://app@127.0.0.1:1/db",
				"TRACEFLAKE_CLICKHOUSE_DSN=clickhouse://app@127.0.0.1:1/otel")
			switch {
			case setting[0] != '-':
				env = append(env, setting+"="+value)
			case rand.IntN(2) == 0:
				args = append(args, setting+"="+value)
			default:
				args = append(args, setting, value)
			}
			cmd := exec.CommandContext(t.Context(), program, args...)
			cmd.Dir, cmd.Env = t.TempDir(), env
			out, _ := cmd.CombinedOutput()
			for _, whole := range []string{hex.EncodeToString(secret), in64} {
				for i := range len(whole) - 7 {
					if part := whole[i : i+8]; strings.Contains(string(out), part) {
						t.Fatalf("%s in %s, %q: the output contains %q of it:\n%s", name, setting,
							args, part, out)
					}
				}
			}
		}
	}
}

// TestPasswords runs commands with addresses whose passwords have a reserved character, not
// escaped. Whatever a client makes of such an address, no output contains four characters in a row
// of the password. Nothing answers at the addresses. Package redact tests each position.
func TestPasswords(t *testing.T) {
	program := build(t)
	const letters = "QXZJKVWBqxzjkvwb" // four of which are in no text
	commands := []struct{ variable, address, command string }{
		{"TRACEFLAKE_STORE", "postgres://app:PASSWORD@127.0.0.1:1/db", "lease list"},
		{"TRACEFLAKE_STORE", "postgres://app:PASSWORD@127.0.0.1:1/db", "doctor"},
		{"TRACEFLAKE_STORE", "s3://key:PASSWORD@bucket/prefix?region=x", "lease list"},
		{"TRACEFLAKE_STORE", "k8s://user:PASSWORD@namespace", "doctor"},
		{"TRACEFLAKE_CLICKHOUSE_DSN", "clickhouse://app:PASSWORD@127.0.0.1:1/otel",
			"clickhouse status"},
		{"TRACEFLAKE_CLICKHOUSE_DSN", "http://app:PASSWORD@127.0.0.1:1/otel", "doctor"},
	}
	for _, c := range commands {
		for _, reserved := range "@#/?%:[" {
			password := make([]rune, 12)
			for i := range password {
				password[i] = rune(letters[rand.IntN(len(letters))])
			}
			password[rand.IntN(len(password))] = reserved
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
