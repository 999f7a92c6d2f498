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
	Comma     byte       // of CSV; 0 is a comma

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
	in    *input
	out   *bufio.Writer
	times stamp.Reader
	keys  map[hash]trace.TraceID
}

// hash is the beginning of a key's SHA-256, so that long keys take no more memory than short ones.
type hash [16]byte

// input counts what is read, and can unread.
type input struct {
	src  io.Reader
	read int64
	back []byte // to be read again
}

func (in *input) Read(p []byte) (n int, err error) {
	if len(in.back) > 0 {
		n = copy(p, in.back)
		in.back = in.back[n:]
		return n, nil
	}
	n, err = in.src.Read(p)
	in.read += int64(n)
	return n, err
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

func start(ctx context.Context, dst io.Writer, src io.Reader, o Options, copyAll func(*run, context.Context) error) (Stats, error) {
	r := &run{
		Options: o,
		in:      &input{src: src},
		out:     bufio.NewWriterSize(dst, 1<<16),
		times:   stamp.Reader{Unit: o.TimeUnit},
		keys:    make(map[hash]trace.TraceID),
	}
	err := r.byteOrderMark()
	if err == nil {
		err = copyAll(r, ctx)
	}
	if flushErr := r.out.Flush(); err == nil {
		err = flushErr
	}
	r.progress()
	return r.Stats, err
}

// byteOrderMark copies the mark at the beginning of the input, if there is one.
func (r *run) byteOrderMark() error {
	const mark = "\uFEFF"
	var head [len(mark)]byte
	n, err := io.ReadFull(r.in, head[:])
	if string(head[:n]) == mark {
		_, err = r.out.WriteString(mark)
		return err
	}
	r.in.back = head[:n]
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

const progressEvery = 1 << 12 // records

// done ends a record. It checks ctx from time to time.
func (r *run) done(ctx context.Context) error {
	r.Records++
	if r.Records%progressEvery == 0 {
		r.progress()
		return context.Cause(ctx)
	}
	return nil
}

func (r *run) progress() {
	r.Bytes, r.Keys = r.in.read, int64(len(r.keys))
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
