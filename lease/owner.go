package lease

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/traceflake/traceflake/internal/entropy"
)

// NewNonce returns a fresh nonce, which identifies a write. Copies of a machine draw different
// nonces even if their kernels have not noticed the restore.
func NewNonce() string {
	var nonce [16]byte
	entropy.Read(nonce[:])
	return hex.EncodeToString(nonce[:])
}

// ownerOn describes this process to operators: the host, which in Kubernetes is the pod, the
// process ID and the start time.
func ownerOn(host string) string {
	suffix := fmt.Sprintf("/%d/%s", os.Getpid(), started.UTC().Format(time.RFC3339))
	host = cmp.Or(host, "unknown")
	host = strings.ToValidUTF8(host[:min(len(host), MaxOwner-len(suffix))], "")
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, host) + suffix
}
