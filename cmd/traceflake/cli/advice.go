package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
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
	{is(lease.ErrNoStore), "traceflake lease create, if none ever was there; correct " +
		"TRACEFLAKE_STORE, if it is elsewhere; if it was lost, see docs/operating.md, \"Changing " +
		"the store\""},
	{is(lease.ErrRaising), "repeat traceflake lease raise, unless somebody is running it now"},
	{is(lease.ErrMoved), "create another store, if this is a copy; if the original is gone for " +
		"good, keep the processes away and run traceflake lease raise --moved-here"},
	{damaged, "put back what the object had, from a backup of it, and raise the " +
		"store; or create another store and roll it out: docs/operating.md, \"Changing the " +
		"store\""},
	{is(lease.ErrReplaced),
		"restart the processes with the secret file of the store that is there now"},
	{is(lease.ErrWrongSecret),
		"use the secret file of this store, or register a new secret: traceflake lease secret add"},
	{is(lease.ErrClockAhead), "set this machine's clock"},
	{is(randflake.ErrInvalidKeyring),
		"correct that line: 32 hex digits, as `traceflake lease create` writes them"},
	{is(lease.ErrSchemaVersion),
		"correct the address if another program keeps its data there, and change nothing of it; " +
			"if a newer traceflake wrote it, install that version"},
	{is(driver.ErrUnknownScheme, lease.ErrInvalidRequest), "correct TRACEFLAKE_STORE"},

	{is(syscall.EROFS),
		"the file system is read-only: mount it for writing, or choose a directory elsewhere"},
	{said("the server is read-only"), "connect to the primary, with " +
		"target_session_attrs=read-write in the URL, or let the role write"},
	{is(syscall.ENOSPC, syscall.EDQUOT),
		"free some space on the disk; processes recover by themselves"},
	{said("is a directory", "not a directory"),
		"correct the path: a file and a directory are mixed up"},
	{is(fs.ErrPermission),
		"let the user of the services read and write there; nothing else is wrong with it"},
	{is(fs.ErrNotExist), "correct the path, or create what the error names as missing"},

	{said("server refused TLS", "first record does not look like a TLS",
		"server gave HTTP response to HTTPS", "reading server preface"),
		"one side uses TLS and the other does not: correct the address (sslmode, etcds://, " +
			"https://), or the server"},
	{untrusted, "the certificate is not trusted: give the right authority (sslrootcert, ca=…), " +
		"or correct the host name"},
	{is(syscall.ECONNREFUSED), "nothing listens there: start the server, or correct host and port"},
	{unknownHost, "correct the host name, or the DNS of this machine"},
	{said("connection refused"),
		"nothing listens there: start the server, or correct host and port"},
	{said("no such host"), "correct the host name, or the DNS of this machine"},

	{code(516, 192, 193, 194), "correct user and password in the address"},
	{code(497), "grant the user what the error names"},
	{code(81), "create the database, or correct it in the address"},
	{code(60, 36), "traceflake clickhouse create; or correct the database in the address"},
	{code(159, 160, 241), "the server is overloaded: try again"},
	{said("is the exporter's", "another schema", "adopt it"),
		"traceflake clickhouse adopt prepare, which copies and drops nothing"},
	{said("there is no table"),
		"traceflake clickhouse create; or correct the database in the address"},

	{said("locked by another process", "is locked"),
		"wait: another process holds it for a moment; if it lasts, look which one with lsof"},
	{is(lease.ErrMisconfigured), "do what the error says"},
	{is(context.DeadlineExceeded), "nothing answers there: start the server, or correct the " +
		"address and look at firewalls between"},
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
	for _, a := range advices {
		if a.about(err) {
			return a.fix
		}
	}
	return "see the error; if it lasts, keep everything as it is and look at the server's log"
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

// damaged matches errors about objects of a store that were edited, truncated or lost.
func damaged(err error) bool {
	return is(driver.ErrEdited)(err) || said("is gone; put it back")(err)
}

// code matches errors of ClickHouse.
func code(codes ...int32) func(error) bool {
	return func(err error) bool {
		e, ok := errors.AsType[*chgo.Exception](err)
		return ok && slices.Contains(codes, e.Code)
	}
}

func untrusted(err error) bool {
	_, unverified := errors.AsType[*tls.CertificateVerificationError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, other := errors.AsType[x509.HostnameError](err)
	return unverified || unknown || other || strings.Contains(err.Error(), "x509: ")
}

func unknownHost(err error) bool {
	e, ok := errors.AsType[*net.DNSError](err)
	return ok && !e.IsTimeout
}
