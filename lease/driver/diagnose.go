package driver

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"syscall"

	"github.com/traceflake/traceflake/lease"
)

// Fixes for errors of connections, for an error of [lease.Error].
const (
	// FixNothingThere is the Fix if no connection is possible.
	FixNothingThere = "start the server, or correct the host and port of the address, or the DNS " +
		"of this machine"
	// FixOtherServer is the Fix if a server does not respond in the protocol.
	FixOtherServer = "correct the address: another kind of server listens there, or one that " +
		"requires TLS"
	// FixTLS is the Fix if only one side uses TLS.
	FixTLS = "use TLS on both sides or on neither: correct the address (sslmode, etcds://, " +
		"https://), or the server"
	// FixCertificate is the Fix if the client does not trust the server's certificate.
	FixCertificate = "set the authority that signed the certificate (sslrootcert, ca=…), or " +
		"correct the host name"
)

// fixes maps errors of files and connections to what an operator can do.
var fixes = []struct {
	fix   string
	about []error
}{
	{"correct the path: a file and a directory are mixed up",
		[]error{syscall.EISDIR, syscall.ENOTDIR}},
	{"give the services' user the right to read and write there", []error{fs.ErrPermission}},
	{"correct the path, or create the missing file or directory", []error{fs.ErrNotExist}},
	{FixTLS, []error{http.ErrSchemeMismatch}},
	{FixOtherServer, []error{io.EOF, io.ErrUnexpectedEOF}},
	{"start the server, which does not answer, or correct the address, or check firewalls in " +
		"between", []error{context.DeadlineExceeded}},
}

// Diagnose adds what an operator can do to an error of a file or of a connection, by the type of
// its cause, unless the error has a Fix already. Stores have it for each error.
func Diagnose(err error) error {
	if fix := fixOf(err); fix != "" && lease.Fix(err) == "" {
		return &lease.Error{Err: err, Fix: fix}
	}
	return err
}

func fixOf(err error) string {
	if err == nil {
		return ""
	}
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		return FixCertificate
	}
	if _, plain := errors.AsType[tls.RecordHeaderError](err); plain {
		return FixTLS
	}
	if _, unknown := errors.AsType[*net.DNSError](err); unknown {
		return FixNothingThere
	}
	for _, row := range fixes {
		for _, cause := range row.about {
			if errors.Is(err, cause) {
				return row.fix
			}
		}
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "dial" {
		return FixNothingThere
	}
	return ""
}
