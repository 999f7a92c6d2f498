package redact

import (
	"cmp"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/traceflake/traceflake/internal/duration"
)

// word is the length from which a word may be a secret, which has 32 digits in hex.
const word = 16

// forms has what the value of a setting should look like, by the name of its variable without
// TRACEFLAKE_: it returns what of a value may not be shown.
var forms = map[string]func(value string) Secrets{
	"STORE":          addressForm,
	"CLICKHOUSE_DSN": addressForm,
	"SECRET_FILE":    shown(isPath),
	"VMCLOCK":        shown(isPath),
	"STRICT":         shown(isBool),
	"TTL":            shown(isDuration),
}

// Setting returns what may not be shown of the value of a setting, by the name of its variable: all
// of it, unless it has the form that it should have, or is too short for a secret and an address: a
// mistyped value that is shown is found. A flag has the form of its variable.
func Setting(name, value string) Secrets {
	value = strings.TrimSpace(value)
	form, ok := forms[strings.TrimPrefix(name, "TRACEFLAKE_")]
	switch {
	case len(value) < word && !strings.ContainsAny(value, ":/@"):
		return Secrets{}
	case !ok:
		return whole(value)
	}
	return form(value)
}

// Environment returns what may not be shown of the variables in an environment that begin with
// TRACEFLAKE_.
func Environment(environ []string) (all Secrets) {
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "TRACEFLAKE_") {
			all = Join(all, Setting(name, value))
		}
	}
	return all
}

// Arguments returns what may not be shown of the arguments of the command: of values of flags that
// have a variable, and of addresses, whatever the flag is.
func Arguments(args []string) (all Secrets) {
	for i, arg := range args {
		flag, value, ok := strings.Cut(arg, "=")
		if !ok && i+1 < len(args) {
			value = args[i+1]
		}
		name := strings.ToUpper(strings.ReplaceAll(strings.TrimLeft(flag, "-"), "-", "_"))
		if name == "DSN" {
			name = "CLICKHOUSE_DSN"
		}
		_, known := forms[name]
		short := strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--")
		if known && strings.HasPrefix(arg, "-") || short && ok {
			all = Join(all, Setting(name, value))
		}
		all = Join(all, Of(arg, value))
	}
	return all
}

// Writer returns a writer to w that leaves out secrets as a whole. Write each in one call.
func (s Secrets) Writer(w io.Writer) io.Writer {
	if len(s.whole) == 0 {
		return w
	}
	return writer{Secrets{whole: s.whole}, w}
}

type writer struct {
	secrets Secrets
	io.Writer
}

func (w writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.Writer, w.secrets.Text(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// shown returns a form whose values are shown as a whole or not at all.
func shown(is func(string) bool) func(string) Secrets {
	return func(value string) Secrets {
		if is(value) {
			return Secrets{}
		}
		return whole(value)
	}
}

// whole returns a value as a secret, in each form in which a text may have it, each line and each
// long word of it by itself too. The longest are replaced first.
func whole(value string) (s Secrets) {
	texts := append(strings.Split(value, "\n"), value)
	for _, text := range strings.FieldsFunc(value, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune(`:/@?&="',;`, r)
	}) {
		if len(text) >= word {
			texts = append(texts, text)
		}
	}
	for _, text := range with(nil, texts...) {
		inJSON, err := json.Marshal(text)
		if err != nil { // never, for a string
			continue
		}
		for _, form := range []string{text, strings.Trim(strconv.Quote(text), `"`),
			strings.Trim(string(inJSON), `"`)} {
			if len(form) >= shortest {
				s.whole = append(s.whole, form)
			}
		}
	}
	slices.SortFunc(s.whole, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	s.whole = slices.Compact(s.whole)
	return s
}

// addressForm is the form of URLs, of which the password is not shown, and of lease directories.
func addressForm(value string) Secrets {
	if path, ok := strings.CutPrefix(value, "file:"); ok {
		return shown(isPath)(path)
	}
	scheme, _, ok := strings.Cut(value, "://")
	if !ok || scheme == "" || strings.ContainsFunc(scheme, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("+-.", r)
	}) {
		return whole(value)
	}
	return Of(value)
}

// isPath reports whether a file or directory exists, or one that it would be in, other than the
// root and the working directory, in which any text may name a file.
func isPath(value string) bool {
	if _, err := os.Stat(value); err == nil {
		return true
	}
	for directory := filepath.Dir(value); directory != "."; directory = filepath.Dir(directory) {
		if directory == filepath.Dir(directory) {
			return false
		}
		if info, err := os.Stat(directory); err == nil {
			return info.IsDir()
		}
	}
	return false
}

func isBool(value string) bool {
	_, err := strconv.ParseBool(value)
	return err == nil
}

func isDuration(value string) bool {
	_, err := duration.Parse(value)
	return err == nil
}
