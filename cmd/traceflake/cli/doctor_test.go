package cli

import (
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// A server that accepts connections and never answers delays each check for at most 5 s, the
// command for as long as one check, and others for 10 s.
func TestSilentServers(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	setAWSKey(t)
	at, secret := silent.Addr().String(), write(t, "secret", secretA)
	postgres, etcd := "--store=postgres://u:p@"+at+"/db", "--store=etcd://"+at
	var all sync.WaitGroup
	for _, args := range [][]string{
		{"doctor", postgres}, {"doctor", etcd}, {"doctor", "--store=etcd://u:p@" + at},
		{"doctor", "--store=k8s://a/b?server=http://" + at},
		{"doctor", "--store=s3://bucket/p?region=r&endpoint=http://" + at},
		{"doctor", "--dsn=http://" + at + "/otel"},
		{"doctor", "--dsn=clickhouse://" + at + "/otel"},
		{"lease", "create", etcd},
	} {
		args = append(args, "--secret-file", secret)
		code, most, want := 1, checkTimeout, "the server does not answer"
		switch {
		case args[0] == "lease":
			code, most, want = 2, storeTimeout, "deadline exceeded"
		case strings.HasPrefix(args[1], "--dsn"):
			args = args[:2] // a secret needs a store
		}
		all.Go(func() {
			began := time.Now()
			r := command(t, "", args...)
			if took := time.Since(began); r.code != code || took > most+3*time.Second ||
				!strings.Contains(r.out+r.errOut, want) {
				t.Errorf("%q: code %d after %s\n%s%s", args, r.code, took, r.out, r.errOut)
			}
		})
	}
	all.Wait()
	// The error has the cause, although a client retries until the end.
	if err := silent.Close(); err != nil {
		t.Fatal(err)
	}
	for _, store := range []string{etcd, postgres} {
		command(t, "", "doctor", store, "--secret-file", secret).
			want(t, 1, "connection refused", "")
	}
}
