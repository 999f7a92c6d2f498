package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"slices"
	"strings"
	"syscall"

	chgo "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// advice tells operators what to do about an error. It loses nothing: no row moves a file, drops a
// table or creates a store that may exist.
type advice struct {
	about func(error) bool
	fix   string
}

// advices is searched in order: rows for particular errors precede general ones.
var advices = []advice{
	{is(lease.ErrNoStore), "if the store was never created: traceflake lease create; " +
		"if it is elsewhere: correct TRACEFLAKE_STORE; if it was lost: see docs/leases.md, " +
		"\"Changing the store\""},
	{is(lease.ErrRaising), "repeat traceflake lease raise, unless somebody is running it now"},
	{is(lease.ErrMoved), "create another store, if this is a copy; if the original is gone for " +
		"good, keep the processes away and run traceflake lease raise --moved-here"},
	{either(is(driver.ErrEdited), said("is gone; put it back")),
		"restore the object from a backup and raise the store; or create another store and roll " +
			"it out: docs/leases.md, \"Changing the store\""},
	{is(lease.ErrReplaced),
		"restart the processes with the current store's secret file"},
	{is(lease.ErrWrongSecret),
		"use the secret file of this store, or register a new secret: traceflake lease secret add"},
	{is(lease.ErrClockAhead), "set this machine's clock"},
	{is(randflake.ErrInvalidKeyring),
		"correct that line: 32 hex digits, as `traceflake lease create` writes them"},
	{is(lease.ErrSchemaVersion),
		"if another program keeps its data there, leave it alone and correct the address; " +
			"if a newer traceflake wrote it, install that version"},
	{is(lease.ErrInvalidRequest), "correct TRACEFLAKE_STORE"},
	{is(errAddress), "correct " + clickhouseVar},

	{is(syscall.EROFS),
		"the file system is read-only: mount it for writing, or choose a directory elsewhere"},
	{said("the server is read-only"), "connect to the primary, with " +
		"target_session_attrs=read-write in the URL, or let the role write"},
	{is(syscall.ENOSPC, syscall.EDQUOT),
		"free some space on the disk; processes recover by themselves"},
	{said("is a directory", "not a directory"),
		"correct the path: a file and a directory are mixed up"},
	{is(fs.ErrPermission),
		"give the services' user the right to read and write there"},
	{is(fs.ErrNotExist), "correct the path, or create the missing file or directory"},

	{said("server refused TLS", "first record does not look like a TLS",
		"server gave HTTP response to HTTPS", "HTTP request to an HTTPS", "reading server preface"),
		"one side uses TLS and the other does not: correct the address (sslmode, etcds://, " +
			"https://), or the server"},
	{said("x509: "), "the certificate is not trusted: set the right authority (sslrootcert, " +
		"ca=…), or correct the host name"},
	{either(is(syscall.ECONNREFUSED), said("connection refused")),
		"nothing listens at this address: start the server, or correct host and port"},
	{either(unknownHost, said("no such host")),
		"correct the host name, or the DNS of this machine"},

	{code(516), "correct user and password in the address"},
	{code(497), "grant the user the missing rights"},
	{code(81), "create the database, or correct it in the address"},
	{either(code(60), said("there is no table")),
		"traceflake clickhouse create; or correct the database in the address"},
	{code(159, 160, 241), "the server is overloaded: try again"},
	{said("is locked by other processes"),
		"wait until the other process releases the lock; if it lasts, find the process with lsof"},
	{is(lease.ErrMisconfigured), "do what the error says"},
	{is(context.DeadlineExceeded), "the server does not answer: start it, correct the " +
		"address, or check firewalls in between"},
	{is(io.EOF, io.ErrUnexpectedEOF), "another kind of server may listen at this address, or one " +
		"that requires TLS: correct the address"},
	{said("query server hello"), "another kind of server may listen at this address: correct it " +
		"to that of ClickHouse's HTTP interface"},
}

// fixable is an error with its fix.
type fixable struct {
	error
	fix string
}

func (f fixable) Unwrap() error { return f.error }

// wrong returns an error with its fix.
func wrong(fix, format string, args ...any) error {
	return fixable{fmt.Errorf(format, args...), fix}
}

// advise returns what to do about an error.
func advise(err error) string {
	if known, ok := errors.AsType[fixable](err); ok {
		return known.fix
	}
	if i := slices.IndexFunc(advices, func(a advice) bool { return a.about(err) }); i >= 0 {
		return advices[i].fix
	}
	return "see the error; if it lasts, change nothing and read the server's log"
}

// is matches errors that wrap one of some.
func is(targets ...error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(targets,
			func(target error) bool { return errors.Is(err, target) })
	}
}

// said matches errors of libraries by their texts, where no value exists.
func said(texts ...string) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(texts,
			func(text string) bool { return strings.Contains(err.Error(), text) })
	}
}

// either matches errors that a or b matches.
func either(a, b func(error) bool) func(error) bool {
	return func(err error) bool { return a(err) || b(err) }
}

// code matches errors of ClickHouse.
func code(codes ...int32) func(error) bool {
	return func(err error) bool {
		e, ok := errors.AsType[*chgo.Exception](err)
		return ok && slices.Contains(codes, e.Code)
	}
}

func unknownHost(err error) bool {
	e, ok := errors.AsType[*net.DNSError](err)
	return ok && !e.IsTimeout
}
