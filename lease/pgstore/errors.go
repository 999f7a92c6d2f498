package pgstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/traceflake/traceflake/lease"
)

// The server's error codes, from appendix A of its manual, that are more than an explanation.
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	uniqueViolation      = "23505"
	undefinedTable       = "42P01"
)

const rights = "grant SELECT and UPDATE on " + DefaultTable + ", SELECT on " + DefaultTable + suffix + ", USAGE on their schema; " +
	"to create the store, the role needs CREATE on the schema"

// meanings are what error codes mean to a store, and what an operator can do.
var meanings = map[string]struct {
	sentinel error
	hint     string
}{
	undefinedTable: {lease.ErrNoStore, ""},
	"42703":        {lease.ErrSchemaVersion, "a column is missing"},
	"42P07":        {lease.ErrExists, "a table has the name already"},
	"25006":        {nil, "the server is read-only, a standby perhaps; connect to the primary"},
	"42501":        {lease.ErrMisconfigured, rights},
	"42704":        {lease.ErrMisconfigured, "the URL has a parameter that the server does not know"},
	"22023":        {lease.ErrMisconfigured, "the URL has a parameter with an invalid value"},
	"3D000":        {lease.ErrMisconfigured, ""}, // no such database
	"3F000":        {lease.ErrMisconfigured, "create it first"},
	"28000":        {lease.ErrMisconfigured, ""}, // the role, or pg_hba.conf
	"28P01":        {lease.ErrMisconfigured, ""}, // the password
}

func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// cause returns a short text for an error of the server or of a connection, and what it means.
func cause(err error) (text string, sentinel error) {
	server, network, untrusted := new(pgconn.PgError), new(net.OpError), new(tls.CertificateVerificationError)
	text = err.Error()
	switch {
	case errors.As(err, &server):
		meaning := meanings[server.Code]
		text, sentinel = server.Message+" (SQLSTATE "+server.Code+")", meaning.sentinel
		if meaning.hint != "" {
			text += ": " + meaning.hint
		}
	case errors.As(err, &network):
		text = network.Error()
	}
	if errors.As(err, &untrusted) || strings.Contains(text, "server refused TLS connection") || // which have no code
		strings.Contains(text, "unsupported startup parameter") { // pgbouncer's code has many meanings
		sentinel = lease.ErrMisconfigured
	}
	return text, sentinel
}

// explain adds to an error what was being done, what it means, and what to do. pgx tries each address, with and
// without TLS, and repeats the role, the database and the host each time: each cause is said once.
func (s *Store) explain(ctx context.Context, what string, failed *error) {
	err := *failed
	if err == nil {
		return
	}
	all := []error{err}
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		all[0] = connect.Unwrap()
		if several, ok := all[0].(interface{ Unwrap() []error }); ok {
			all = several.Unwrap()
		}
	}
	var texts []string
	_, meaning := cause(all[0])
	for _, err := range all {
		text, sentinel := cause(err)
		if !errors.Is(sentinel, meaning) {
			meaning = nil // another address may serve later
		}
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if errors.Is(meaning, lease.ErrNoStore) && s.used.Load() != nil {
		meaning = lease.ErrReplaced
	}
	if connect != nil || code(err) != "" {
		err = brief{err, strings.Join(texts, "; ")}
	}
	for _, sentinel := range []error{meaning, ctx.Err()} {
		if sentinel != nil && !errors.Is(err, sentinel) {
			err = fmt.Errorf("%w: %w", sentinel, err)
		}
	}
	*failed = fmt.Errorf("pgstore: %s: table %s: %w", what, s.name, err)
}

// brief is an error with a shorter text.
type brief struct {
	error
	text string
}

func (b brief) Error() string { return b.text }
func (b brief) Unwrap() error { return b.error }
