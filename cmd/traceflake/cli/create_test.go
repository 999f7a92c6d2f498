package cli

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A command that was interrupted while it wrote is repeated, and begins a history of its own. The
// engine's tests interrupt every write.
func TestLeaseCommandsAreKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a begin by others is watched for seconds
		time.Sleep(time.Until(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)))
		url, s := newServer()
		secret := filepath.Join(t.TempDir(), "secret")
		for _, name := range []string{"create", "rekey"} {
			args := []string{"lease", name, "--store", url, "--secret-file", secret}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s.OnWrite(func(object string) {
				if strings.HasPrefix(object, "page-") {
					cancel()
				}
			})
			silently(ctx, args...)
			s.OnWrite(nil)
			left, err := opened(t, url).Describe(t.Context())
			if err == nil {
				t.Fatalf("%s was not interrupted", name)
			}
			command(t, "", args...).want(t, 0, "history ", "")
			if id := acquired(t, url, 0); id == left.ID {
				t.Errorf("%s: the history %s went on", name, id)
			}
		}
	})
}
