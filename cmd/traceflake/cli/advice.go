package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	chgo "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// advice tells operators what to do about an error. It loses nothing: no row moves a file, drops a
// table or creates a store that may exist.
type advice struct {
	about causes
	fix   string
}

// causes are errors that others wrap, texts of libraries that export no such error, and codes of
// ClickHouse.
type causes []any

type code int32

// of reports whether err has one of the causes.
func (c causes) of(err error) bool {
	return slices.ContainsFunc(c, func(cause any) bool {
		switch cause := cause.(type) {
		case error:
			return errors.Is(err, cause)
		case string:
			return strings.Contains(err.Error(), cause)
		}
		e, ok := errors.AsType[*chgo.Exception](err)
		return ok && code(e.Code) == cause
	})
}

// advices is searched in order: rows for particular errors precede general ones.
var advices = []advice{
	{causes{randflake.ErrInvalidKeyring},
		"correct that line: 32 hex digits, as `traceflake lease create` writes them"},
	{causes{lease.ErrInvalidRequest}, "correct TRACEFLAKE_STORE"},
	{causes{errAddress}, "correct " + clickhouseVar},

	{causes{syscall.EROFS},
		"the file system is read-only: mount it for writing, or choose a directory elsewhere"},
	{causes{syscall.ENOSPC, syscall.EDQUOT},
		"free some space on the disk; processes recover by themselves"},
	{causes{"is a directory", "not a directory"},
		"correct the path: a file and a directory are mixed up"},
	{causes{fs.ErrPermission},
		"give the services' user the right to read and write there"},
	{causes{fs.ErrNotExist}, "correct the path, or create the missing file or directory"},

	{causes{"server refused TLS", "first record does not look like a TLS",
		"server gave HTTP response to HTTPS", "HTTP request to an HTTPS", "reading server preface"},
		"one side uses TLS and the other does not: correct the address (sslmode, etcds://, " +
			"https://), or the server"},
	{causes{"x509: "}, "the certificate is not trusted: set the right authority (sslrootcert, " +
		"ca=…), or correct the host name"},
	{causes{syscall.ECONNREFUSED, "connection refused"},
		"nothing listens at this address: start the server, or correct host and port"},
	{causes{"no such host", "server misbehaving", "in name resolution"},
		"correct the host name, or the DNS of this machine"},

	{causes{code(516)}, "correct user and password in the address"},
	{causes{code(497)}, "grant the user the missing rights"},
	{causes{code(81)}, "create the database, or correct it in the address"},
	{causes{code(60), "there is no table"},
		"traceflake clickhouse create; or correct the database in the address"},
	{causes{code(159), code(160), code(241)}, "the server is overloaded: try again"},
	{causes{"is locked by other processes"},
		"wait until the other process releases the lock; if it lasts, find the process with lsof"},
	{causes{lease.ErrMisconfigured}, "do what the error says"},
	{causes{context.DeadlineExceeded}, "the server does not answer: start it, correct the " +
		"address, or check firewalls in between"},
	{causes{io.EOF, io.ErrUnexpectedEOF}, "another kind of server may listen at this address, or " +
		"one that requires TLS: correct the address"},
	{causes{"query server hello"}, "another kind of server may listen at this address: correct " +
		"it to that of ClickHouse's HTTP interface"},
}

// wrong returns an error with its fix.
func wrong(fix, format string, args ...any) error {
	return &lease.Error{Err: fmt.Errorf(format, args...), Fix: fix}
}

// advise returns what to do about an error.
func advise(err error) string {
	if fix := lease.Fix(err); fix != "" {
		return fix
	}
	if i := slices.IndexFunc(advices, func(a advice) bool { return a.about.of(err) }); i >= 0 {
		return advices[i].fix
	}
	return "see the error; if it lasts, change nothing and read the server's log"
}
