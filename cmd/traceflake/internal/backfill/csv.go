package backfill

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
)

// csvFile has the columns of a file.
type csvFile struct {
	*run
	comma         byte
	columns       int
	when, key, id int // columns; id is -1 if it is added, key if there is none
	feed          *feed
	parser        *csv.Reader
}

func (r *run) csv(ctx context.Context) error {
	f := &csvFile{run: r, comma: r.Comma}
	if f.comma == 0 {
		f.comma = ','
	}
	f.reset()
	if _, err := r.out.Write(r.in.bom()); err != nil {
		return err
	}
	if err := f.header(); err != nil {
		return err
	}
	for {
		record, err := r.in.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(content(record)) == 0 {
			if _, err := r.out.Write(record); err != nil {
				return err
			}
			continue
		}
		if r.in.long {
			r.failed(r.in.number, errLong)
			err = r.copyLong(record)
		} else {
			err = f.record(record)
		}
		if err != nil {
			return err
		}
		if err := r.done(ctx); err != nil {
			return err
		}
	}
}

// feed passes one record to the parser.
type feed struct{ bytes.Reader }

func (f *csvFile) reset() {
	f.feed = new(feed)
	f.parser = csv.NewReader(f.feed)
	f.parser.Comma = rune(f.comma)
	f.parser.FieldsPerRecord = -1
	f.parser.ReuseRecord = true
}

// parse returns the fields of a record.
func (f *csvFile) parse(record []byte) ([]string, error) {
	f.feed.Reset(record)
	fields, err := f.parser.Read()
	if err != nil || f.feed.Len() > 0 {
		f.reset() // the parser may hold the rest of the record
	}
	var parseErr *csv.ParseError
	switch {
	case errors.As(err, &parseErr):
		return nil, parseErr.Err // without the parser's line number, which counts within the record
	case errors.Is(err, io.EOF):
		return nil, errors.New("it has no fields")
	}
	return fields, err
}

func (f *csvFile) header() error {
	line, err := f.in.next()
	if errors.Is(err, io.EOF) {
		return errors.New("there is no header")
	}
	if err != nil {
		return err
	}
	names, err := f.parse(line)
	if err != nil {
		return fmt.Errorf("the header in line 1: %w", err)
	}
	f.columns = len(names)
	f.when, f.id, f.key = slices.Index(names, f.TimeField), slices.Index(names, f.IDField), -1
	if f.when < 0 {
		return fmt.Errorf("the header has no column %q; it has %q", f.TimeField, names)
	}
	if f.KeyField != "" {
		if f.key = slices.Index(names, f.KeyField); f.key < 0 {
			return fmt.Errorf("the header has no column %q; it has %q", f.KeyField, names)
		}
	}
	if f.id >= 0 {
		_, err = f.out.Write(line)
		return err
	}
	var name bytes.Buffer
	w := csv.NewWriter(&name)
	w.Comma = rune(f.comma)
	if err := w.Write([]string{f.IDField}); err != nil {
		return err
	}
	w.Flush()
	return f.appendCell(line, content(name.Bytes()))
}

// record copies the record that starts with this line.
func (f *csvFile) record(line []byte) error {
	number, count := f.in.number, int64(1)
	record, err := f.complete(line, &count)
	switch {
	case errors.Is(err, errLong):
		f.failed(number, err)
		return f.copyLong(record)
	case err != nil && !errors.Is(err, io.EOF):
		return err
	}
	fields, err := f.parse(record)
	if err == nil && len(fields) != f.columns {
		err = fmt.Errorf("it has %d fields, the header has %d; was it truncated?", len(fields), f.columns)
	}
	if err != nil {
		// An unclosed quote is an error in the first line.
		first := record
		if n := bytes.IndexByte(record, '\n') + 1; n > 0 && n < len(record) {
			first = record[:n]
			f.in.takeBack(record[n:], count-1)
		}
		f.failed(number, err)
		_, err = f.out.Write(first)
		return err
	}
	if f.id >= 0 && fields[f.id] != "" {
		f.Kept++
		_, err = f.out.Write(record)
		return err
	}
	var key []byte
	if f.key >= 0 {
		key = []byte(fields[f.key])
	}
	id, err := f.run.id(fields[f.when], key, content(record))
	if err != nil {
		var bad badRecord
		if !errors.As(err, &bad) {
			return err
		}
		f.failed(number, bad.error)
		if f.id >= 0 {
			_, err = f.out.Write(record)
			return err
		}
		return f.appendCell(record, nil)
	}
	f.Added++
	if f.id < 0 {
		return f.appendCell(record, []byte(id.String()))
	}
	return f.fillCell(record, id.String())
}

// complete adds lines to the first until no quote is open.
func (f *csvFile) complete(line []byte, count *int64) ([]byte, error) {
	quotes := bytes.Count(line, []byte{'"'})
	if quotes%2 == 0 {
		return line, nil
	}
	record := append([]byte(nil), line...)
	for quotes%2 != 0 && len(record) < maxOpen {
		line, err := f.in.next()
		if err != nil {
			return record, err
		}
		*count++
		quotes += bytes.Count(line, []byte{'"'})
		record = append(record, line...)
		if f.in.long {
			return record, errLong
		}
	}
	return record, nil
}

// maxOpen is the longest quoted text in bytes. For a record truncated within quotes, reading stops
// there.
const maxOpen = 1 << 20

// appendCell writes the record with one more cell.
func (f *csvFile) appendCell(record, cell []byte) error {
	body := content(record)
	for _, part := range [][]byte{body, {f.comma}, cell, record[len(body):]} {
		if _, err := f.out.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// fillCell writes the record with the empty cell of the ID filled.
func (f *csvFile) fillCell(record []byte, id string) error {
	at, column := f.parser.FieldPos(f.id)
	offset := 0
	for range at - f.firstLine() {
		offset += bytes.IndexByte(record[offset:], '\n') + 1
	}
	offset += column - 1
	if offset < len(record) && record[offset] == '"' {
		offset++
	}
	for _, part := range [][]byte{record[:offset], []byte(id), record[offset:]} {
		if _, err := f.out.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// firstLine is the parser's number for the record's first line.
func (f *csvFile) firstLine() int {
	line, _ := f.parser.FieldPos(0)
	return line
}
