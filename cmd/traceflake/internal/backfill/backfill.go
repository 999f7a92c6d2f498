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
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/stamp"
	"github.com/traceflake/traceflake/traceid"
)

// MaxRecord is the length in bytes up to which a record gets an ID. Longer ones are reported and
// copied.
const MaxRecord = 16 << 20

// Options configures a run. All except KeyField are required.
type Options struct {
	TimeField string // holds the record's time
	IDField   string // gets the trace ID
	KeyField  string // "": each record has its own trace

	// NewID returns the trace ID of a record, or of a key's first record. key
	// is the correlation key, or the whole record if there is no key; it is
	// valid only during the call. traceid.ErrBeforeEpoch and
	// traceid.ErrAfterEnd are reported for the record; any other error ends
	// the run.
	NewID func(t time.Time, key []byte) (trace.TraceID, error)
	// Report is called for each record that gets no ID, with the number of its
	// line, from 1.
	Report func(line int64, problem error)
}

// Stats counts records.
type Stats struct {
	Added  int64 // got an ID
	Kept   int64 // had one
	Failed int64 // reported
}

// NDJSON copies records of one JSON object per line from src to dst. Blank lines are copied. It
// fails only on errors of reading, writing, NewID or ctx; records that get no ID are reported and
// copied unchanged.
func NDJSON(ctx context.Context, dst io.Writer, src io.Reader, o Options) (s Stats, err error) {
	in, out := bufio.NewReaderSize(src, MaxRecord), bufio.NewWriterSize(dst, 1<<16)
	defer func() { err = errors.Join(err, out.Flush()) }()
	ids := map[string]trace.TraceID{} // by key
	for number := int64(1); ; number++ {
		line, readErr := in.ReadSlice('\n')
		problem := errLong
		if !errors.Is(readErr, bufio.ErrBufferFull) {
			if line, problem, err = o.add(&s, line, ids); err != nil {
				return s, err
			}
		}
		if problem != nil {
			s.Failed++
			o.Report(number, problem)
		}
		_, err = out.Write(line)
		for errors.Is(readErr, bufio.ErrBufferFull) { // the rest of a long line
			line, readErr = in.ReadSlice('\n')
			_, err = out.Write(line)
		}
		if errors.Is(readErr, io.EOF) {
			return s, err
		}
		if err = errors.Join(err, readErr, context.Cause(ctx)); err != nil {
			return s, err
		}
	}
}

var errLong = errors.New("the record is longer than 16 MiB and was copied unchanged")

// add returns a line with its ID, or the line itself if that has an ID already or there is a problem
// of the record. err ends the run.
func (o Options) add(s *Stats, line []byte, ids map[string]trace.TraceID) (with []byte, problem, err error) {
	if len(bytes.TrimSpace(line)) == 0 {
		return line, nil, nil
	}
	var object map[string]json.RawMessage // the last of several with the same name, as in most JSON readers
	if json.Unmarshal(line, &object) != nil || object == nil {
		return line, errors.New("not a whole JSON object"), nil
	}
	present := string(object[o.IDField])
	if present != "" && present != "null" && present != `""` {
		s.Kept++
		return line, nil, nil
	}
	value := lookup(object, o.TimeField)
	if value == nil {
		return line, fmt.Errorf("there is no field %q", o.TimeField), nil
	}
	when, problem := stamp.Read(text(value))
	if problem != nil {
		return line, fmt.Errorf("field %q: %w", o.TimeField, problem), nil
	}
	key := text(lookup(object, o.KeyField))
	id, ok := ids[key]
	if !ok {
		of := []byte(key)
		if key == "" {
			of = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		}
		id, err = o.NewID(when, of)
		if errors.Is(err, traceid.ErrBeforeEpoch) || errors.Is(err, traceid.ErrAfterEnd) {
			return line, fmt.Errorf("%s: %w", when.UTC().Format(time.RFC3339Nano), err), nil
		}
		if err != nil {
			return line, nil, err
		}
	}
	if key != "" {
		ids[key] = id
	}
	s.Added++
	if present != "" {
		from, to := locate(line, o.IDField)
		return slices.Concat(line[:from], fmt.Appendf(nil, "%q", id), line[to:]), nil, nil
	}
	name, err := json.Marshal(o.IDField)
	end := len(bytes.TrimRight(line[:bytes.LastIndexByte(line, '}')], " \t\r\n")) // of the last field
	return slices.Concat(line[:end], fmt.Appendf(nil, ",%s:%q", name, id), line[end:]), nil, err
}

// locate returns where the value of a field is in a valid object.
func locate(line []byte, field string) (from, to int) {
	in := json.NewDecoder(bytes.NewReader(line))
	_, _ = in.Token() // the brace
	for in.More() {
		name, _ := in.Token()
		var value json.RawMessage
		_ = in.Decode(&value)
		if end := int(in.InputOffset()); name == field {
			from, to = end-len(value), end
		}
	}
	return from, to
}

// lookup returns the field with this name, or nil. If there is none, dots in the name lead into
// nested objects.
func lookup(object map[string]json.RawMessage, name string) json.RawMessage {
	if value, ok := object[name]; ok {
		return value
	}
	for i, c := range name {
		var inner map[string]json.RawMessage
		if c != '.' || json.Unmarshal(object[name[:i]], &inner) != nil {
			continue
		}
		if found := lookup(inner, name[i+1:]); found != nil {
			return found
		}
	}
	return nil
}

// text returns the content of a text, the digits of a number, and nothing for null.
func text(value json.RawMessage) (s string) {
	if json.Unmarshal(value, &s) != nil {
		return string(value)
	}
	return s
}
