package driver

import (
	"cmp"
	"context"
	_ "embed" // the answers
	"errors"
	"io"
	"io/fs"
	"net"
	"syscall"

	"github.com/traceflake/traceflake/lease"
)

// CommonFix returns a fix that several stores have, for a [lease.Error], by its name. It panics if
// there is none. A table of answers has it as "$NAME".
func CommonFix(name string) string {
	fix, ok := commonFixes[name]
	if !ok {
		panic("driver: no fix is called " + name)
	}
	return fix
}

var commonFixes = map[string]string{
	// no connection is possible
	"NOTHING_THERE": "start the server, or correct the host and port of the address, or the DNS " +
		"of this machine",
	// a server does not respond in the protocol
	"OTHER_SERVER": "correct the address: another kind of server listens there, or one that " +
		"requires TLS",
	// only one side uses TLS
	"TLS": "use TLS on both sides or on neither: correct the address (sslmode, etcds://, " +
		"https://), or the server",
	// the server wants a certificate of the client, or another one
	"CLIENT_CERTIFICATE": "set a client certificate that the server trusts, and its key: sslcert " +
		"and sslkey in the URL of PostgreSQL, cert and key in that of etcd",
	"CREDENTIALS": "correct the credentials, which are not those of the server; or a proxy " +
		"between here and the server changes requests",
	"PRIMARY": "connect to the primary: name all hosts in the URL, with " +
		"target_session_attrs=read-write; or let the role write",
}

//go:embed answers.txt
var networkTable string

// network has what proxies and servers answer before the store's protocol begins, for which
// libraries have no type.
var network = ParseAnswers(networkTable)

// kinds maps errors of files and connections to what an operator can do.
var kinds = []struct {
	fix   string
	about []error
}{
	{"correct the path: a file and a directory are mixed up",
		[]error{syscall.EISDIR, syscall.ENOTDIR}},
	{"give the services' user the right to read and write there", []error{fs.ErrPermission}},
	{"correct the path, or create the missing file or directory", []error{fs.ErrNotExist}},
	{CommonFix("OTHER_SERVER"), []error{io.EOF, io.ErrUnexpectedEOF}},
	{"start the server, which does not answer, or correct the address, or check firewalls in " +
		"between", []error{context.DeadlineExceeded}},
}

// Network returns what an error of a connection means, in which no server of a store answered.
func Network(err error) Answer { return network.Find("", err.Error()) }

// Diagnose adds what an operator can do to an error of a file or of a connection, by its cause,
// unless the error has a Fix already. Stores have it for each error.
func Diagnose(err error) error {
	if err == nil || lease.Fix(err) != "" {
		return err
	}
	row := Network(err)
	err = Mean(row.Means, err)
	if row.Means == nil && unreached(err) {
		err = Mean(lease.ErrUnavailable, err)
	}
	if fix := cmp.Or(row.Fix, fixOf(err)); fix != "" {
		return &lease.Error{Err: err, Fix: fix}
	}
	return err
}

// unreached reports whether no server was reached, or the connection broke.
func unreached(err error) bool {
	_, network := errors.AsType[net.Error](err)
	return network && !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF)
}

func fixOf(err error) string {
	if _, unknown := errors.AsType[*net.DNSError](err); unknown {
		return CommonFix("NOTHING_THERE")
	}
	dial, ok := errors.AsType[*net.OpError](err)
	dialed := ok && dial.Op == "dial"
	if dialed && errors.Is(err, fs.ErrNotExist) { // a socket
		return CommonFix("NOTHING_THERE")
	}
	for _, row := range kinds {
		for _, cause := range row.about {
			if errors.Is(err, cause) {
				return row.fix
			}
		}
	}
	if dialed {
		return CommonFix("NOTHING_THERE")
	}
	return ""
}
