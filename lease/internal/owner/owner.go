// Package owner composes and checks the text that shows operators who holds a block.
package owner

import (
	"fmt"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// MaxLen is the longest text, in bytes.
const MaxLen = 128

// Check refuses a text that a store or a terminal might not handle: it must be
// valid UTF-8, printable, and at most MaxLen bytes long. It may be empty.
func Check(text string) error {
	switch {
	case len(text) > MaxLen:
		return fmt.Errorf("owner has %d bytes, want at most %d", len(text), MaxLen)
	case !utf8.ValidString(text):
		return fmt.Errorf("owner %q is not valid UTF-8", text)
	case strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("owner %q has a character that is not printable", text)
	}
	return nil
}

// started is when this process began, as closely as a package can know.
var started = time.Now()

// Default names this process: the host, which in Kubernetes is the pod, the
// process ID and the start time.
func Default() string { return name(os.Hostname()) }

// name is Default for what os.Hostname returned.
func name(host string, err error) string {
	if err != nil || host == "" {
		host = "unknown"
	}
	suffix := fmt.Sprintf("/%d/%s", os.Getpid(), started.UTC().Format(time.RFC3339))
	host = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, host)
	for len(host)+len(suffix) > MaxLen {
		_, last := utf8.DecodeLastRuneInString(host)
		host = host[:len(host)-last]
	}
	return host + suffix
}
