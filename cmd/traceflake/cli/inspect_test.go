package cli

import (
	"net"
	"path/filepath"
	"testing"
	"time"
)

// What a secret decodes is shown soon, even if the store never answers.
func TestInspectWithSilentStore(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections, and is silent
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	secret := write(t, "secret", secretA)
	for _, store := range []string{"postgres://" + listener.Addr().String() + "/db",
		"etcd://" + listener.Addr().String()} {
		start := time.Now()
		r := command(t, "", "inspect", "--store", store, "--secret-file", secret,
			made(t, secret, 1)[0])
		r.want(t, 0, "halves agree", "leases are not shown: ")
		if took := time.Since(start); took > storeTimeout/2 {
			t.Errorf("%s: %s", store, took)
		}
	}
}

// Without the lease directory, whose secret decodes IDs, they are shown as they are without a
// secret.
func TestInspectWithoutLeaseFile(t *testing.T) {
	store := "file:" + filepath.Join(t.TempDir(), "none.db")
	r := command(t, "", "inspect", "--store", store, "16c6e867fa0000050123456789abcdef")
	r.want(t, 0, "a secret would decide", "leases are not shown: there is no lease directory yet")
}
