package protocol

import (
	"fmt"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxOwner is the longest owner, in bytes.
const maxOwner = 128

// CheckOwner returns an error for a text that a store or a terminal might not handle: an owner is
// at most 128 bytes of printable UTF-8. It may be empty.
func CheckOwner(text string) error {
	switch {
	case len(text) > maxOwner:
		return fmt.Errorf("owner has %d bytes, want at most %d", len(text), maxOwner)
	case !utf8.ValidString(text):
		return fmt.Errorf("owner %q is not valid UTF-8", text)
	case strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("owner %q has a character that is not printable", text)
	}
	return nil
}

// started is about when this process began.
var started = time.Now()

// Owner describes this process to operators: the host, which in Kubernetes is the pod, the process
// ID and the start time.
func Owner() string { return name(os.Hostname()) }

// name returns the owner on a host, for what os.Hostname returned.
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
	for len(host)+len(suffix) > maxOwner {
		_, last := utf8.DecodeLastRuneInString(host)
		host = host[:len(host)-last]
	}
	return host + suffix
}
