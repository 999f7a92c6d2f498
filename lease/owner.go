package lease

import (
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/traceflake/traceflake/internal/entropy"
)

// NewNonce returns a fresh nonce, which identifies a write. Copies of a machine draw different
// nonces even if their kernels have not noticed the restore.
func NewNonce() string {
	var nonce [16]byte
	entropy.Read(nonce[:])
	return hex.EncodeToString(nonce[:])
}

// started is about when this process began.
var started = time.Now()

// ownerOn describes this process to operators: the host, which in Kubernetes is the pod, the
// process ID and the start time. It takes what os.Hostname returned.
func ownerOn(host string, err error) string {
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
	for len(host)+len(suffix) > MaxOwner {
		_, last := utf8.DecodeLastRuneInString(host)
		host = host[:len(host)-last]
	}
	return host + suffix
}
