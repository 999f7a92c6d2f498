package redact_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/internal/redact"
)

// TestPasswords puts passwords of 12 random characters with a reserved one at each position, or
// several, into addresses, escaped and not. No text that could be an error contains four of
// them in a row, or a password in an escaped form.
func TestPasswords(t *testing.T) {
	const letters = "abcdefgh01234567" // most of which may follow a %
	r := rand.New(rand.NewPCG(rand.Uint64(), 1))
	all := []rune("@:/?#[]%&=+;, \"'\\|^~!$()*<>{}`é")
	for _, reserved := range all {
		for position := range 13 {
			runes := make([]rune, 12)
			for i := range runes {
				runes[i] = rune(letters[r.IntN(len(letters))])
				switch {
				case i == position, position == 12 && i%6 == 0:
					runes[i] = reserved
				case position == 12 && i%6 == 3:
					runes[i] = all[r.IntN(len(all))]
				}
			}
			password := string(runes)
			user := url.UserPassword("app", password).String()
			for _, address := range []string{
				"postgres://app:" + password + "@host/db?sslmode=disable",
				"clickhouse://app:" + url.QueryEscape(password) + "@host:9000/otel",
				"etcd://" + user + "@a:1,b:2/prefix",
				"etcd://app:" + password + "@a:1,b:2/prefix",
				"clickhouse://host:9000/otel?username=u&password=" + url.QueryEscape(password),
			} {
				secrets := redact.Of(address)
				for _, text := range said(address) {
					shown := secrets.Text(text)
					for _, part := range []string{partOf(password, shown), user[4:],
						url.QueryEscape(password)} {
						if part != "" && strings.Contains(shown, part) {
							t.Fatalf("%q of the password %q is in %q, from %q", part, password,
								shown, text)
						}
					}
				}
			}
		}
	}
}

// said returns what libraries say of an address.
func said(address string) []string {
	_, rest, _ := strings.Cut(address, "://")
	texts := []string{address, fmt.Sprintf("%q", address), rest}
	if u, err := url.Parse(address); err != nil {
		texts = append(texts, err.Error())
	} else {
		texts = append(texts, "lookup "+u.Host+": no such host", u.String(), u.Path, u.Fragment)
	}
	for _, separator := range []string{"@", "/", ":", "#", "?"} {
		for part := range strings.SplitSeq(rest, separator) {
			texts = append(texts, "dial tcp "+part+": connection refused")
		}
	}
	return texts
}

// partOf returns four characters in a row of a password that a text has.
func partOf(password, text string) string {
	runes := []rune(password)
	for i := range len(runes) - 3 {
		if part := string(runes[i : i+4]); strings.Contains(text, part) {
			return part
		}
	}
	return ""
}

// Parts of a password are not shown where another part of the address is expected.
func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"etcds://user:hunter2/hunter2@a:1,b:2/prefix": "etcds://a:1,b:2/prefix",
		" postgres://user:hunter2@host/db?sslmode=x":  "postgres://host/db",
		"redis://host/db?password=x@hunter2":          "…",
		"redis://user:hunter2?@host":                  "…",
		"host=db password=hunter2":                    "…",
		"host=h password=hu://hunter2":                "…",
		"file:/var/lib/leases":                        "file:/var/lib/leases",
	} {
		if got := redact.Address(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestText(t *testing.T) {
	secrets := redact.Of("postgres://app:hunter2@secret#x@host/db")
	for text, want := range map[string]string{
		"lookup secret#x@host: no such host": "lookup …@host: no such host",
		"app at host/db":                     "app at host/db",
		"hun":                                "hun",
		"":                                   "",
	} {
		if got := secrets.Text(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	s := redact.Of("file:/var/lib/a@b", "", "postgres://host/db", "postgres://app@host")
	const text = "file:/var/lib/a@b postgres://host/db postgres://app@host"
	if got := s.Text(text); got != text {
		t.Errorf("%q", got)
	}
}

func TestError(t *testing.T) {
	secrets := redact.Of("postgres://app:hunter2@host/db")
	err := secrets.Error(fmt.Errorf("user hunter2: %w", io.EOF))
	if err.Error() != "user …: EOF" || !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if secrets.Error(nil) != nil || secrets.Error(io.EOF).Error() != io.EOF.Error() {
		t.Error("an error without secrets is changed")
	}
}

// What has the form of its setting is shown, apart from passwords. Everything else is not, in
// whatever form a text has it.
func TestSetting(t *testing.T) {
	directory := t.TempDir()
	const secret = "dffd6021bb2bd5b0af676290809ec3a5"
	for _, c := range []struct {
		name, value string
		shown       bool
	}{
		{"SECRET_FILE", directory + "/missing", true},
		{"SECRET_FILE", "/nowhere/secret", false},
		{"SECRET_FILE", secret, false},
		{"SECRET_FILE", "# a comment\n" + secret + "\n", false},
		{"SECRET_FILE", "postgres://app:hunter2@host/db", false},
		{"SECRET", secret, false},
		{"STORE", "file:" + directory, true},
		{"STORE", "file:" + secret, false},
		{"STORE", secret, false},
		{"STORE", "postgres://host/db", true},
		{"TTL", "10m", true},
		{"TTL", "ten minutes", true}, // shorter than any secret
		{"TTL", "postgres://app:hunter2@host/db", false},
		{"STRICT", "true", true},
		{"STRICT", secret, false},
		{"UNKNOWN", secret, false},
		{"TTL", "", true},
	} {
		secrets := redact.Setting("TRACEFLAKE_"+c.name, c.value)
		text := fmt.Sprintf("%s, %q, %s", c.value, c.value, url.QueryEscape(c.value))
		got := secrets.Text(text)
		part := partOf(strings.TrimPrefix(c.value, "file:"), got)
		if shown := got == text; shown != c.shown || !shown && part != "" {
			t.Errorf("%s=%s is shown: %q", c.name, c.value, got)
		}
	}
}

// Values of flags with a variable, and addresses in any argument.
func TestArguments(t *testing.T) {
	args := []string{"doctor", "--secret-file", "dffd6021bb2bd5b0af676290809ec3a5",
		"--store=hunter3hunter3hunter3", "",
		"-store=postgres://app:hunter2@host/db", "--dsn", "clickhouse://app:hunter4@host", "x=y"}
	secrets := redact.Join(redact.Arguments(args),
		redact.Environment([]string{"TRACEFLAKE_TTL=hunter5hunter5hunter5", "HOME=/root",
			"PATH=a:b"}))
	got := secrets.Text(strings.Join(args, " ") + " hunter5hunter5hunter5 /root a:b")
	if strings.Contains(got, "hun") || strings.Contains(got, "dffd") ||
		!strings.HasSuffix(got, "x=y … /root a:b") {
		t.Error(got)
	}
}
