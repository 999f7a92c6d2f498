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
	refused := errors.New(err.Error()) // without the end of the context, which is no cause
	fix := cmp.Or(lease.Fix(driver.Diagnose(refused)), answers.Find(s.scheme, err.Error()).Fix)
	return &lease.Error{Err: driver.Mean(lease.ErrUnavailable, err), Fix: fix}
}
