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

// meaning is what an error means to a store, and what an operator can do.
type meaning struct {
	sentinel error // nil if the error is temporary
	fix      string
}

const fixStandby = "connect to the primary, with target_session_attrs=read-write in the URL, or " +
	"let the role write"

// errLogged is returned if the place may be on other servers, too.
var errLogged error = &lease.Error{
	Err: fmt.Errorf("%w: traceflake_place is not an unlogged table", lease.ErrMisconfigured),
	Fix: "ALTER TABLE traceflake_place SET UNLOGGED",
}

// meanings maps the server's codes.
var meanings = map[string]meaning{
	"42703": {lease.ErrSchemaVersion, ""}, // the table traceflake_store is another program's
	"25006": {nil, fixStandby},
	"0A000": {nil, fixStandby}, // unlogged tables cannot be read there
	"42501": {lease.ErrMisconfigured,
		"grant CONNECT on the database, SELECT, INSERT and UPDATE on traceflake_store, SELECT " +
			"and INSERT on traceflake_place, and USAGE on their schema; to create the store, or " +
			"a table that was not restored, the role needs CREATE on the schema"},
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

// undone reports whether the server did nothing because of another client: a serialization failure
// or a deadlock.
func undone(err error) bool { return slices.Contains([]string{"40001", "40P01"}, code(err)) }

// refusesTLS reports whether the server of an attempt does not speak TLS. pgx has no type for it.
func refusesTLS(err error) bool {
	return strings.HasSuffix(err.Error(), "server refused TLS connection")
}

// cause returns the meaning of a failed statement or attempt to connect, and the server's or the
// network's error in it, without what pgx repeats for each address.
func cause(err error) (about meaning, _ error) {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		if strings.Contains(e.Message, "unsupported startup parameter") { // pgbouncer: 08P01
			return meanings["42704"], e
		}
		return meanings[e.Code], e
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return meaning{sentinel: lease.ErrMisconfigured}, e
	}
	if refusesTLS(err) {
		return meaning{lease.ErrMisconfigured, driver.FixTLS},
			errors.New("the server refuses TLS")
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return about, e
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return about, e
	}
	return about, err
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
	if code(failed) != "" {
		all = slices.DeleteFunc(slices.Clone(all), refusesTLS)
	}
	return all
}

// explain adds the meaning of an error and what to do, and reports each cause once.
func explain(ctx context.Context, failed error) error {
	if failed == nil {
		return nil
	}
	if undone(failed) {
		return &driver.TryAgain{Err: failed}
	}
	all := attempts(failed)
	about, err := cause(all[0])
	for _, attempt := range all[1:] {
		meaning, other := cause(attempt)
		if !strings.Contains(err.Error(), other.Error()) {
			err = fmt.Errorf("%w; %w", err, other)
		}
		about.fix = cmp.Or(about.fix, meaning.fix)
		if !errors.Is(meaning.sentinel, about.sentinel) {
			about.sentinel = nil // another address may serve later
		}
	}
	for _, sentinel := range []error{about.sentinel, ctx.Err()} {
		if sentinel != nil && !errors.Is(err, sentinel) {
			err = fmt.Errorf("%w: %w", sentinel, err)
		}
	}
	if about.fix != "" {
		err = &lease.Error{Err: err, Fix: about.fix}
	}
	return err
}
