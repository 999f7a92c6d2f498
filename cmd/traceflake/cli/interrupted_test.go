package cli

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// An interruption ends a command at once that waits for a silent server, and is the reason that the
// command prints. The doctor does not report the check that was interrupted.
func TestInterrupted(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	at, secret := silent.Addr().String(), write(t, "secret", secretA)
	interrupt := errors.New("interrupted by the test")
	var all sync.WaitGroup
	for _, args := range [][]string{
		{"doctor", "--dsn=clickhouse://" + at + "/otel"},
		{"doctor", "--dsn=http://" + at + "/otel"},
		{"doctor", "--store=etcd://" + at, "--secret-file=" + secret},
		{"clickhouse", "status", "--dsn=clickhouse://" + at + "/otel"},
		{"clickhouse", "create", "--dsn=clickhouse://" + at + "/otel"},
		{"trace", random, "--dsn=clickhouse://" + at + "/otel"},
		{"lease", "list", "--store=postgres://u:p@" + at + "/db"},
	} {
		all.Go(func() {
			ctx, cancel := context.WithCancelCause(t.Context())
			var interrupted time.Time
			time.AfterFunc(500*time.Millisecond, func() {
				interrupted = time.Now()
				cancel(interrupt)
			})
			var out, errOut locked
			code := run(ctx, args, strings.NewReader(""), &out, &errOut)
			<-ctx.Done()
			if took := time.Since(interrupted); code != 2 || took > 5*time.Second ||
				!strings.Contains(errOut.String(), interrupt.Error()) ||
				strings.Contains(out.String(), "WRONG") {
				t.Errorf("%q: code %d after %s\n%s%s", args, code, took, &out, &errOut)
			}
		})
	}
	all.Wait()
}
