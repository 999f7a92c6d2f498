// Package backfill adds trace IDs to records that predate tracing: a different ID to each record,
// or the same ID to all records with one correlation key.
//
// The ID is inserted into the record's text; every other byte is kept. Memory is bounded whatever
// the input's size.
package backfill

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/stamp"
	"github.com/traceflake/traceflake/traceid"
)

// MaxRecord is the longest record in bytes that gets an ID. Longer ones are
// reported and copied.
const MaxRecord = 16 << 20

// Options configures a run. TimeField, IDField and NewID are required.
type Options struct {
	TimeField string     // holds the record's time
	TimeUnit  stamp.Unit // how numbers in it are read
	IDField   string     // gets the trace ID
	KeyField  string     // "": each record has its own trace
	Comma     byte       // of CSV; 0 is a comma
	TempDir   string     // for the keys; "" is the system's

	// NewID returns the trace ID of a record, or of a key's first record. key
	// is the correlation key, or the whole record if there is no key; it is
	// valid only during the call. traceid.ErrBeforeEpoch and
	// traceid.ErrAfterEnd are reported for the record; any other error ends
	// the run.
	NewID func(t time.Time, key []byte) (trace.TraceID, error)
	// Report is called for each record that gets no ID, with the number of its
	// first line, from 1. It may be nil.
	Report func(line int64, err error)
	// Progress is called from time to time, and at the end. It may be nil.
	Progress func(Stats)
}

// Stats counts the work done so far.
type Stats struct {
	Bytes   int64 // read
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
	in    *lines
	out   *bufio.Writer
	times stamp.Reader
	keys  *keyTable // nil: no correlation
}

// NDJSON copies records of one JSON object per line from src to dst. Blank lines are copied. It
// fails only on errors of reading, writing or ctx; records that get no ID are reported and copied
// unchanged.
func NDJSON(ctx context.Context, dst io.Writer, src io.Reader, o Options) (Stats, error) {
	return start(ctx, dst, src, o, (*run).ndjson)
}

// CSV copies records of RFC 4180 from src to dst; the first is the header. If the header lacks the
// ID field, it becomes the last column. Records that get no ID are reported and keep that column
// empty; malformed ones are copied unchanged. Blank lines are copied.
func CSV(ctx context.Context, dst io.Writer, src io.Reader, o Options) (Stats, error) {
	return start(ctx, dst, src, o, (*run).csv)
}

func start(ctx context.Context, dst io.Writer, src io.Reader, o Options, copyAll func(*run, context.Context) error) (s Stats, err error) {
	r := &run{
		Options: o,
		in:      &lines{src: bufio.NewReaderSize(src, 1<<18)},
		out:     bufio.NewWriterSize(dst, 1<<18),
		times:   stamp.Reader{Unit: o.TimeUnit},
	}
	if o.KeyField != "" {
		if r.keys, err = newKeyTable(o.TempDir); err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, r.keys.close()) }()
	}
	err = copyAll(r, ctx)
	if flushErr := r.out.Flush(); err == nil {
		err = flushErr
	}
	r.progress()
	return r.Stats, err
}

const progressEvery = 1 << 12 // records

// done ends a record. It checks ctx from time to time.
func (r *run) done(ctx context.Context) error {
	r.Records++
	if r.Records%progressEvery == 0 {
		r.progress()
		return ctx.Err()
	}
	return nil
}

func (r *run) progress() {
	r.Bytes = r.in.read
	if r.keys != nil {
		r.Keys = r.keys.n
	}
	if r.Progress != nil {
		r.Progress(r.Stats)
	}
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
	if r.keys == nil || len(key) == 0 {
		if id, err = r.newID(t, record); err == nil && r.keys != nil {
			r.Keyless++
		}
		return id, err
	}
	return r.keys.get(key, func() (trace.TraceID, error) { return r.newID(t, key) })
}

func (r *run) newID(t time.Time, key []byte) (trace.TraceID, error) {
	id, err := r.NewID(t, key)
	if errors.Is(err, traceid.ErrBeforeEpoch) || errors.Is(err, traceid.ErrAfterEnd) {
		err = badRecord{fmt.Errorf("%s: %w", t.UTC().Format(time.RFC3339Nano), err)}
	}
	return id, err
}
