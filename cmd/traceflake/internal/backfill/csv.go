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

// csvFile copies a file. The parser finds the end of each record; what it has read is kept until
// then, and copied unchanged.
type csvFile struct {
	*run
	parser        *csv.Reader
	unread        bytes.Buffer // what the parser has read of the following records, and read ahead
	parsed        int64        // the parser's offset at the beginning of unread
	line          int64        // of the beginning of unread
	columns       int
	when, key, id int // columns; id is -1 if it is added, key if there is none
}

func (r *run) csv(ctx context.Context) error {
	f := &csvFile{run: r, line: 1}
	if f.Comma == 0 {
		f.Comma = ','
	}
	f.reset()
	for header := true; ; header = false {
		fields, err := f.parser.Read()
		if errors.Is(err, io.EOF) {
			if header {
				return errors.New("the input is empty: it has no header")
			}
			return f.write(f.unread.Bytes()) // blank lines
		}
		if err := f.copyBlank(); err != nil {
			return err
		}
		switch {
		case header:
			err = f.header(fields, err)
		default:
			err = f.record(fields, err)
			if err == nil {
				err = f.done(ctx)
			}
		}
		if err != nil {
			return err
		}
	}
}

// Read is the parser's input.
func (f *csvFile) Read(p []byte) (int, error) {
	if f.unread.Len() > MaxRecord {
		return 0, errLong
	}
	n, err := f.in.Read(p)
	f.unread.Write(p[:n])
	return n, err
}

// reset restarts the parser, with unread empty.
func (f *csvFile) reset() {
	f.unread.Reset()
	f.parsed = 0
	f.parser = csv.NewReader(f)
	f.parser.Comma = rune(f.Comma)
	f.parser.FieldsPerRecord = -1
	f.parser.ReuseRecord = true
}

// next returns the bytes of the record that the parser has read.
func (f *csvFile) next() []byte {
	end := f.parser.InputOffset()
	record := f.unread.Next(int(end - f.parsed))
	f.parsed = end
	f.line += int64(bytes.Count(record, []byte{'\n'}))
	return record
}

// copyBlank copies the blank lines before a record, which the parser skips.
func (f *csvFile) copyBlank() error {
	for {
		var n int
		switch text := f.unread.Bytes(); {
		case bytes.HasPrefix(text, []byte("\n")):
			n = 1
		case bytes.HasPrefix(text, []byte("\r\n")):
			n = 2
		default:
			return nil
		}
		f.line++
		f.parsed += int64(n)
		if err := f.write(f.unread.Next(n)); err != nil {
			return err
		}
	}
}

func (f *csvFile) header(names []string, err error) error {
	if err != nil {
		return fmt.Errorf("the header in line %d: %w", f.line, reason(err))
	}
	f.columns = len(names)
	f.when, f.id, f.key = slices.Index(names, f.TimeField), slices.Index(names, f.IDField), -1
	if f.when < 0 {
		return fmt.Errorf("there is no column %q in the header %q", f.TimeField, names)
	}
	if f.KeyField != "" {
		if f.key = slices.Index(names, f.KeyField); f.key < 0 {
			return fmt.Errorf("there is no column %q in the header %q", f.KeyField, names)
		}
	}
	if f.id >= 0 {
		return f.write(f.next())
	}
	var name bytes.Buffer
	w := csv.NewWriter(&name)
	w.Comma = rune(f.Comma)
	if err := w.Write([]string{f.IDField}); err != nil {
		return err
	}
	w.Flush()
	return f.appendCell(f.next(), content(name.Bytes()))
}

// reason returns an error of the parser without its line numbers, which count from reset.
func reason(err error) error {
	var parseErr *csv.ParseError
	if errors.As(err, &parseErr) {
		return parseErr.Err
	}
	return err
}

// record copies a record.
func (f *csvFile) record(fields []string, err error) error {
	var parseErr *csv.ParseError
	switch {
	case errors.As(err, &parseErr), errors.Is(err, errLong):
		return f.skipLine(reason(err))
	case err != nil:
		return err
	case len(fields) != f.columns:
		return f.skipLine(fmt.Errorf("%d fields, but the header has %d; was the record truncated?", len(fields), f.columns))
	}
	line := f.line
	record := f.next()
	if f.id >= 0 && fields[f.id] != "" {
		f.Kept++
		return f.write(record)
	}
	var key []byte
	if f.key >= 0 {
		key = []byte(fields[f.key])
	}
	id, err := f.run.id(fields[f.when], key, content(record))
	var bad badRecord
	switch {
	case errors.As(err, &bad) && f.id >= 0:
		f.failed(line, bad.error)
		return f.write(record)
	case errors.As(err, &bad):
		f.failed(line, bad.error)
		return f.appendCell(record, nil)
	case err != nil:
		return err
	}
	f.Added++
	if f.id < 0 {
		return f.appendCell(record, []byte(id.String()))
	}
	return f.fillCell(record, id.String())
}

// skipLine reports a record, copies its first line and goes on with the second: an open quote may
// have swallowed good records.
func (f *csvFile) skipLine(err error) error {
	f.failed(f.line, err)
	line := bytes.Clone(f.unread.Bytes())
	f.reset()
	end := bytes.IndexByte(line, '\n') + 1
	for end == 0 { // the line is longer than what was read
		if err := f.write(line); err != nil {
			return err
		}
		line = line[:cap(line)]
		n, err := f.in.Read(line)
		line = line[:n]
		end = bytes.IndexByte(line, '\n') + 1
		if errors.Is(err, io.EOF) {
			end = n
			break
		}
		if err != nil {
			return err
		}
	}
	f.in.back = slices.Concat(line[end:], f.in.back)
	f.line++
	return f.write(line[:end])
}

// appendCell writes the record with one more cell.
func (f *csvFile) appendCell(record, cell []byte) error {
	body := content(record)
	return f.write(body, []byte{f.Comma}, cell, record[len(body):])
}

// fillCell writes the record with the empty cell of the ID filled.
func (f *csvFile) fillCell(record []byte, id string) error {
	first, _ := f.parser.FieldPos(0)
	line, column := f.parser.FieldPos(f.id)
	at := column - 1
	for rest := record; line > first; line-- {
		n := bytes.IndexByte(rest, '\n') + 1
		at, rest = at+n, rest[n:]
	}
	if at < len(record) && record[at] == '"' {
		at++
	}
	return f.write(record[:at], []byte(id), record[at:])
}
