package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	chgo "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// Each row of the table is the advice for some error, and no advice loses anything.
func TestAdvice(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	reached := make([]bool, len(advices))
	for _, c := range []struct {
		err  error
		want string
	}{
		{lease.ErrNoStore, "never created: traceflake lease create"},
		{lease.ErrRaising, "repeat traceflake lease raise"},
		{lease.ErrMoved, "traceflake lease raise --moved-here"},
		{lease.ErrReplaced, "current store's secret file"},
		{lease.ErrWrongSecret, "traceflake lease secret add"},
		{lease.ErrClockAhead, "set this machine's clock"},
		{randflake.ErrInvalidKeyring, "correct that line"},
		{driver.ErrEdited, "restore the object from a backup"},
		{lease.ErrSchemaVersion, "install that version"},
		{lease.ErrInvalidRequest, "correct TRACEFLAKE_STORE"},

		{errAddress, "correct TRACEFLAKE_CLICKHOUSE_DSN"},
		{syscall.EROFS, "read-only"},
		{errors.New("the server is read-only, a standby perhaps"), "connect to the primary"},
		{syscall.ENOSPC, "free some space"},
		{syscall.EISDIR, "correct the path"},
		{fs.ErrPermission, "give the services' user the right to read and write there"},
		{fs.ErrNotExist, "create the missing file"},
		{errors.New("server refused TLS connection"), "one side uses TLS"},
		{errors.New("x509: certificate signed by unknown authority"), "not trusted"},
		{refused, "nothing listens at this address"},
		{&net.DNSError{Err: "server misbehaving"}, "correct the host name"},
		{fmt.Errorf("%w (transport: connection refused)", context.DeadlineExceeded),
			"nothing listens at this address"},
		{fmt.Errorf("%w (transport: no such host)", context.DeadlineExceeded),
			"correct the host name"},
		{&chgo.Exception{Code: 516}, "user and password"},
		{&chgo.Exception{Code: 497}, "grant"},
		{&chgo.Exception{Code: 81}, "create the database"},
		{&chgo.Exception{Code: 60}, "traceflake clickhouse create"},
		{&chgo.Exception{Code: 159}, "overloaded"},
		{errors.New("clickhouse: there is no table otel_traces"), "traceflake clickhouse create"},
		{errors.New("the directory is locked by other processes"), "wait"},
		{lease.ErrMisconfigured, "do what the error says"},
		{context.DeadlineExceeded, "the server does not answer"},
		{io.ErrUnexpectedEOF, "one that requires TLS"},
		{errors.New("failed to query server hello: [HTTP 404]"), "ClickHouse's HTTP interface"},
		{errors.New("something else"), "change nothing and read"},
	} {
		err := fmt.Errorf("package: call: %w", c.err)
		if got := advise(err); !strings.Contains(got, c.want) {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
		if row := slices.IndexFunc(advices, func(a advice) bool { return a.about(err) }); row >= 0 {
			reached[row] = true
		}
	}
	loses := regexp.MustCompile(`\b(move|delete|remove|drop|truncate)\b`)
	for row, a := range advices {
		if !reached[row] {
			t.Errorf("row %d has no error of the test: %q", row, a.fix)
		}
		if loses.MatchString(a.fix) {
			t.Errorf("%q may lose something", a.fix)
		}
	}
}
