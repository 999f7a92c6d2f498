package idgen

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
)

// refusals counts calls that the source refused, and reports changes.
type refusals struct {
	fallback sdktrace.IDGenerator // nil: random bits after the clear half
	reasons  [len(reasons) + 1]atomic.Int64
	falling  atomic.Bool
}

// Fallbacks returns how many calls were served without the source so far.
func (r *refusals) Fallbacks() (n int64) {
	for i := range r.reasons {
		n += r.reasons[i].Load()
	}
	return n
}

// refused counts a refusal, and reports it if it is the first in a row.
func (r *refusals) refused(err error) {
	r.reasons[reason(err)].Add(1)
	if !r.falling.Load() && r.falling.CompareAndSwap(false, true) {
		otel.Handle(fmt.Errorf("idgen: IDs are random from now on: %w", err))
	}
}

// recovered reports the end of a series of refusals.
func (r *refusals) recovered() {
	if r.falling.Load() && r.falling.CompareAndSwap(true, false) {
		otel.Handle(errRecovered)
	}
}

var errRecovered = errors.New("idgen: IDs come from the source again")

// randomIDs returns IDs without the source. While the clock is out of range
// high is 0, and the clear half is random: such IDs sort anywhere, whereas a
// wrong time would sort all of them into one place.
func (g *Generator) randomIDs(ctx context.Context, high uint64, err error) (trace.TraceID, trace.SpanID) {
	g.refused(err)
	var id trace.TraceID
	var span trace.SpanID
	if g.fallback != nil {
		id, span = g.fallback.NewIDs(ctx)
	}
	if !id.IsValid() {
		if high == 0 {
			high = uint64(randomID())
		}
		id = join(high, randomID())
	}
	if !span.IsValid() {
		span = spanID(randomID())
	}
	return id, span
}

func (g *Generator) randomSpanID(ctx context.Context, id trace.TraceID, err error) (span trace.SpanID) {
	g.refused(err)
	if g.fallback != nil {
		span = g.fallback.NewSpanID(ctx, id)
	}
	if !span.IsValid() {
		span = spanID(randomID())
	}
	return span
}

// randomID returns random bits that are not all zero.
func randomID() randflake.ID {
	var b [8]byte
	for {
		_, _ = rand.Read(b[:]) // never fails
		if id := randflake.ID(binary.BigEndian.Uint64(b[:])); id != 0 {
			return id
		}
	}
}
