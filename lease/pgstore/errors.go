package pgstore

import (
	"cmp"
	"context"
	"crypto/tls"
	_ "embed" // the answers
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// noTable is the code of an error of the server: there is no such table.
const noTable = "42P01"

//go:embed answers.txt
var answersTable string

// answers has what the server and the client's library answer.
var answers = driver.ParseAnswers(answersTable)

// errLogged is returned if the place may be on other servers, too.
var errLogged error = &lease.Error{
	Err: fmt.Errorf("%w: traceflake_place is not an unlogged table", lease.ErrMisconfigured),
	Fix: "ALTER TABLE traceflake_place SET UNLOGGED",
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

// cause returns what a failed statement or attempt to connect means, and the server's or the
// network's error in it, without what pgx repeats for each address.
func cause(err error) (about driver.Answer, _ error) {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return answers.Find(e.Code, e.Message), e
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return driver.Network(e), e
	}
	if refusesTLS(err) {
		err = errors.New("the server refuses TLS")
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return about, e
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return about, e
	}
	return answers.Find("", err.Error()), err
}

// attempts returns the errors with which pgx has tried each address, with and without TLS. If an
// address has answered otherwise, that it does not speak TLS is not the cause.
func attempts(failed error) []error {
	all := []error{failed}
	if connect, ok := errors.AsType[*pgconn.ConnectError](failed); ok {
		if several, ok := connect.Unwrap().(interface{ Unwrap() []error }); ok {
			all = several.Unwrap()
		}
	}
	address := func(err error) string { return strings.SplitN(err.Error(), ": ", 2)[0] }
	return slices.DeleteFunc(slices.Clone(all), func(err error) bool {
		return refusesTLS(err) && slices.ContainsFunc(all, func(other error) bool {
			return !refusesTLS(other) && address(other) == address(err)
		})
	})
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
		answer, other := cause(attempt)
		if !strings.Contains(err.Error(), other.Error()) {
			err = fmt.Errorf("%w; %w", err, other)
		}
		about.Fix = cmp.Or(about.Fix, answer.Fix)
		if !errors.Is(answer.Means, about.Means) {
			about.Means = nil // another address may serve later
		}
	}
	err = driver.Mean(about.Means, err)
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	if about.Fix != "" {
		err = &lease.Error{Err: err, Fix: about.Fix}
	}
	return err
}
