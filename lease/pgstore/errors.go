package pgstore

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// Codes of the server's errors, from appendix A of its manual.
const noTable = "42P01"

// meanings maps the server's codes to errors of a store and to what operators can do.
var meanings = map[string]struct {
	sentinel error
	fix      string
}{
	"42703": {lease.ErrSchemaVersion,
		"correct the address: the table traceflake_store is another program's"},
	"42809": {lease.ErrExists, ""}, // a table has the view's name
	"25006": {nil,
		"connect to the primary, with target_session_attrs=read-write in the URL, or let the " +
			"role write"},
	"42501": {lease.ErrMisconfigured,
		"grant CONNECT on the database, SELECT and UPDATE on traceflake_store, and USAGE on " +
			"its schema; to create the store, the role needs CREATE on the schema"},
	"42704": {lease.ErrMisconfigured,
		"remove the parameter of the URL that the server does not know"},
	"22023": {lease.ErrMisconfigured, "correct the URL's parameter with an invalid value"},
	"3D000": {lease.ErrMisconfigured, "create the database, or correct it in the URL"},
	"3F000": {lease.ErrMisconfigured, "create the schema first"},
	"28000": {lease.ErrMisconfigured,
		"correct the user in the URL, or let it log in: LOGIN, pg_hba.conf"},
	"28P01": {lease.ErrMisconfigured, "correct user and password in the URL"},
	"53300": {nil, "close some of the server's connections, or raise its limit or the role's"},
	"57P03": {nil, "wait until the server has started; processes recover by themselves"},
}

// code returns the code of a server's error, or "" for other errors.
func code(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// cause returns a short text for an error of the server or of a connection, what an operator can
// do, and its sentinel.
func cause(err error) (text, fix string, sentinel error) {
	text = err.Error()
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		meaning := meanings[e.Code]
		text = e.Message + " (SQLSTATE " + e.Code + ")"
		sentinel, fix = meaning.sentinel, meaning.fix
	} else if e, ok := errors.AsType[*net.OpError](err); ok {
		text = e.Error()
	} else if e, ok := errors.AsType[*net.DNSError](err); ok {
		text = e.Error() // pgx repeats it
	}
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		sentinel = lease.ErrMisconfigured
	}
	switch { // texts of pgx, and of pgbouncer, whose code has many meanings
	case strings.Contains(text, "server refused TLS connection"):
		return "the server refuses TLS", driver.FixTLS, lease.ErrMisconfigured
	case strings.Contains(text, "unsupported startup parameter"):
		return text, meanings["42704"].fix, lease.ErrMisconfigured
	}
	return text, fix, sentinel
}

// attempts returns the errors with which pgx has tried each address, with and without TLS. If a
// server has answered, that it does not speak TLS is not the cause.
func attempts(failed error) []error {
	all := []error{failed}
	if connect, ok := errors.AsType[*pgconn.ConnectError](failed); ok {
		if several, ok := connect.Unwrap().(interface{ Unwrap() []error }); ok {
			all = several.Unwrap()
		}
	}
	if slices.ContainsFunc(all, func(err error) bool { return code(err) != "" }) {
		all = slices.DeleteFunc(slices.Clone(all), func(err error) bool {
			_, fix, _ := cause(err)
			return fix == driver.FixTLS
		})
	}
	return all
}

// explain adds the meaning of an error and what to do. pgx repeats the role, the database and the
// host for each address; explain reports each cause once.
func explain(ctx context.Context, failed error) error {
	if failed == nil {
		return nil
	}
	if undone(failed) {
		return &driver.TryAgain{Err: failed}
	}
	causes := attempts(failed)
	_, advice, meaning := cause(causes[0])
	b := brief{error: failed}
	for _, err := range causes {
		text, fix, sentinel := cause(err)
		advice = cmp.Or(advice, fix)
		if !errors.Is(sentinel, meaning) {
			meaning = nil // another address may serve later
		}
		if !slices.Contains(b.texts, text) {
			b.texts = append(b.texts, text)
		}
	}
	err := error(b)
	for _, sentinel := range []error{meaning, ctx.Err()} {
		if sentinel != nil && !errors.Is(err, sentinel) {
			err = fmt.Errorf("%w: %w", sentinel, err)
		}
	}
	if advice != "" {
		err = &lease.Error{Err: err, Fix: advice}
	}
	return err
}

// brief is an error with a shorter text.
type brief struct {
	error
	texts []string
}

func (b brief) Error() string { return strings.Join(b.texts, "; ") }
func (b brief) Unwrap() error { return b.error }
