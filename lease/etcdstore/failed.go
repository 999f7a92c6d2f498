package etcdstore

import (
	"cmp"
	"context"
	_ "embed" // the answers
	"errors"
	"fmt"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

//go:embed answers.txt
var answersTable string

// answers has what the server answers.
var answers = driver.ParseAnswers(answersTable)

// failed adds what an operator can do to err.
func (s *objects) failed(err error) error {
	why := s.cause.Load()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded) && why != nil && *why != "":
		return s.unconnected(fmt.Errorf("%w: %s", err, *why))
	}
	return answers.Explain("-", err, "{url}", urlForm, "{prefix}", s.prefix)
}

// unconnected adds what an operator can do to the error of a call that reached no member.
func (s *objects) unconnected(err error) error {
	fix := driver.CommonFix("NOTHING_THERE")
	if handshake := s.handshake.Load(); handshake != nil {
		refused := errors.New(err.Error()) // without the end of the context, which is no cause
		fix = cmp.Or(lease.Fix(driver.Diagnose(*handshake)), lease.Fix(driver.Diagnose(refused)))
		switch {
		case s.encrypted && fix == driver.CommonFix("OTHER_SERVER"): // it understood no handshake
			fix = driver.CommonFix("TLS")
		case fix != "":
		case *handshake != nil:
			fix = driver.CommonFix("TLS")
		case s.encrypted: // which the server then closed
			fix = driver.CommonFix("CLIENT_CERTIFICATE") +
				"; or another kind of server listens there"
		default:
			fix = driver.CommonFix("OTHER_SERVER")
		}
	}
	return &lease.Error{Err: driver.Mean(lease.ErrUnavailable, err), Fix: fix}
}
