// Package backfill adds trace IDs to records that predate tracing: a different ID to each record,
// or the same ID to all records with one correlation key.
//
// The ID is inserted into the record's text; every other byte is kept. Memory grows only with the
// number of keys.
package backfill

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/stamp"
	"github.com/traceflake/traceflake/traceid"
)

// MaxRecord is the length in bytes up to which a record gets an ID. Longer ones are reported and
// copied.
const MaxRecord = 16 << 20

// Options configures a run. TimeField, IDField and NewID are required.
type Options struct {
	TimeField string     // holds the record's time
	TimeUnit  stamp.Unit // how numbers in it are read
	IDField   string     // gets the trace ID
	KeyField  string     // "": each record has its own trace

	// NewID returns the trace ID of a record, or of a key's first record. key
	// is the correlation key, or the whole record if there is no key; it is
	// valid only during the call. traceid.ErrBeforeEpoch and
	// traceid.ErrAfterEnd are reported for the record; any other error ends
	// the run.
	NewID func(t time.Time, key []byte) (trace.TraceID, error)
	// Report is called for each record that gets no ID, with the number of its
	// first line, from 1. It may be nil.
	Report func(line int64, err error)
}

// Stats counts the work done.
type Stats struct {
	Records int64 // all of the following
	Added   int64 // got an ID
	Kept    int64 // had one
	Failed  int64 // reported
	Keyless int64 // added records without a key, each with its own trace
	Keys    int64 // different keys
}

// run is one pass over a file.
type run struct {
	Options
	Stats
	in    io.Reader
	out   *bufio.Writer
	times stamp.Reader
	keys  map[hash]trace.TraceID
}

// hash is the beginning of a key's SHA-256, so that long keys take no more memory than short ones.
type hash [16]byte

// NDJSON copies records of one JSON object per line from src to dst. Blank lines are copied. It
// fails only on errors of reading, writing or ctx; records that get no ID are reported and copied
// unchanged.
func NDJSON(ctx context.Context, dst io.Writer, src io.Reader, o Options) (Stats, error) {
	r := &run{
		Options: o,
		in:      src,
		out:     bufio.NewWriterSize(dst, 1<<16),
		times:   stamp.Reader{Unit: o.TimeUnit},
		keys:    make(map[hash]trace.TraceID),
	}
	err := r.ndjson(ctx)
	if flushErr := r.out.Flush(); err == nil {
		err = flushErr
	}
	r.Keys = int64(len(r.keys))
	return r.Stats, err
}

// done ends a record.
func (r *run) done(ctx context.Context) error {
	r.Records++
	return context.Cause(ctx)
}

func (r *run) failed(line int64, err error) {
	r.Failed++
	if r.Report != nil {
		r.Report(line, err)
	}
}

// badRecord is an error of one record, which does not end the run.
type badRecord struct{ error }

func (e badRecord) Unwrap() error { return e.error }

// id returns the trace ID of a record with this time and key, or a badRecord.
func (r *run) id(text string, key, record []byte) (id trace.TraceID, err error) {
	t, err := r.times.Read(text)
	if err != nil {
		return id, badRecord{fmt.Errorf("field %q: %w", r.TimeField, err)}
	}
	if len(key) == 0 {
		if id, err = r.newID(t, record); err == nil && r.KeyField != "" {
			r.Keyless++
		}
		return id, err
	}
	sum := sha256.Sum256(key)
	short := hash(sum[:len(hash{})])
	id, ok := r.keys[short]
	if !ok {
		if id, err = r.newID(t, key); err == nil {
			r.keys[short] = id
		}
	}
	return id, err
}

func (r *run) newID(t time.Time, key []byte) (trace.TraceID, error) {
	id, err := r.NewID(t, key)
	if errors.Is(err, traceid.ErrBeforeEpoch) || errors.Is(err, traceid.ErrAfterEnd) {
		err = badRecord{fmt.Errorf("%s: %w", t.UTC().Format(time.RFC3339Nano), err)}
	}
	return id, err
}

// content returns a record without its line end.
func content(record []byte) []byte {
	record = bytes.TrimSuffix(record, []byte("\n"))
	return bytes.TrimSuffix(record, []byte("\r"))
}

var errLong = errors.New("the record is longer than 16 MiB and was copied unchanged")
