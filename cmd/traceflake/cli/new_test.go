package cli

import (
	"path/filepath"
	"testing"
)

// If a service would use random IDs, new fails (testdata/dead.txtar); it also fails if its lease
// cannot be given back.
func TestNewWithoutRelease(t *testing.T) {
	url, s := newServer()
	secret := filepath.Join(t.TempDir(), "secret")
	command(t, "", "lease", "create", "--store", url, "--secret-file", secret).want(t, 0, something,
		"")
	created := s.Writes
	s.Accepts = func(string, bool) bool {
		if s.Writes > created+1 { // the release, which follows the grant
			s.Delete("")
			return false
		}
		return true
	}
	command(t, "", "new", "--store", url, "--secret-file", secret).want(t, 2, something,
		"release node ")
}
