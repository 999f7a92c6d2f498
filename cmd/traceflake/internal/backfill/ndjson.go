package backfill

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

func (r *run) ndjson(ctx context.Context) error {
	name, err := json.Marshal(r.IDField)
	if err != nil {
		return err
	}
	in := bufio.NewReaderSize(r.in, 1<<16)
	var long []byte // a line longer than in's buffer
	for number := int64(1); ; number++ {
		line, readErr := in.ReadSlice('\n')
		if errors.Is(readErr, bufio.ErrBufferFull) {
			long = append(long[:0], line...)
			for errors.Is(readErr, bufio.ErrBufferFull) && len(long) < MaxRecord {
				line, readErr = in.ReadSlice('\n')
				long = append(long, line...)
			}
			line = long
		}
		if readErr != nil && !errors.Is(readErr, io.EOF) && !errors.Is(readErr, bufio.ErrBufferFull) {
			return readErr
		}
		switch {
		case errors.Is(readErr, bufio.ErrBufferFull):
			r.failed(number, errLong)
			for errors.Is(readErr, bufio.ErrBufferFull) && err == nil {
				_, err = r.out.Write(line)
				line, readErr = in.ReadSlice('\n')
			}
			if _, writeErr := r.out.Write(line); err == nil {
				err = writeErr
			}
		case len(bytes.TrimSpace(line)) == 0:
			_, err = r.out.Write(line)
			r.Records-- // a blank line is no record
		default:
			err = r.object(number, line, name)
		}
		if err == nil {
			err = r.done(ctx)
		}
		if err != nil {
			return err
		}
		if errors.Is(readErr, io.EOF) {
			return nil
		}
	}
}

// object copies one line and inserts the ID.
func (r *run) object(number int64, line, name []byte) error {
	at, insert, err := r.splice(content(line), name)
	if err != nil {
		var bad badRecord
		if !errors.As(err, &bad) {
			return err
		}
		r.failed(number, bad.error)
		_, err = r.out.Write(line)
		return err
	}
	return r.write(line[:at[0]], insert, line[at[1]:])
}

var errNoObject = badRecord{errors.New("the line is not a JSON object; was it truncated?")}

// splice returns which bytes of the object to replace, and with what.
func (r *run) splice(text, name []byte) (at [2]int, insert []byte, err error) {
	var object map[string]json.RawMessage // the last of several with the same name, as in most JSON readers
	if begin := bytes.TrimSpace(text); len(begin) == 0 || begin[0] != '{' || json.Unmarshal(text, &object) != nil {
		return at, nil, errNoObject
	}
	present := string(object[r.IDField])
	if present != "" && present != "null" && present != `""` {
		r.Kept++
		return [2]int{}, nil, nil
	}
	when, err := r.time(object)
	if err != nil {
		return at, nil, err
	}
	id, err := r.id(when, key(lookup(object, r.KeyField)), text)
	if err != nil {
		return at, nil, err
	}
	r.Added++
	if present != "" {
		return locate(text, r.IDField), fmt.Appendf(nil, `"%s"`, id), nil
	}
	end := len(bytes.TrimRight(text[:bytes.LastIndexByte(text, '}')], " \t\r\n")) // of the last field
	return [2]int{end, end}, fmt.Appendf(nil, `,%s:"%s"`, name, id), nil
}

// locate returns where the value of a field is in a valid object.
func locate(text []byte, field string) (at [2]int) {
	in := json.NewDecoder(bytes.NewReader(text))
	_, _ = in.Token() // the brace
	for in.More() {
		name, _ := in.Token()
		var value json.RawMessage
		_ = in.Decode(&value)
		if end := int(in.InputOffset()); name == field {
			at = [2]int{end - len(value), end}
		}
	}
	return at
}

// time returns the text of the object's time.
func (r *run) time(object map[string]json.RawMessage) (text string, err error) {
	value := lookup(object, r.TimeField)
	switch {
	case value == nil:
		return "", badRecord{fmt.Errorf("it has no field %q", r.TimeField)}
	case value[0] == '"':
		err = json.Unmarshal(value, &text)
		return text, err
	case value[0] == '-', '0' <= value[0] && value[0] <= '9':
		return string(value), nil
	}
	return "", badRecord{fmt.Errorf("field %q is neither text nor a number", r.TimeField)}
}

// lookup returns the field with this name, or nil. If there is none, dots in the name lead into
// nested objects.
func lookup(object map[string]json.RawMessage, name string) json.RawMessage {
	if value, ok := object[name]; ok {
		return value
	}
	for i, c := range name {
		if c != '.' {
			continue
		}
		var inner map[string]json.RawMessage
		if value, ok := object[name[:i]]; !ok || json.Unmarshal(value, &inner) != nil {
			continue
		}
		if found := lookup(inner, name[i+1:]); found != nil {
			return found
		}
	}
	return nil
}

// key returns the correlation key in a value: the same for a text and a number of its digits, and
// none for null.
func key(value json.RawMessage) []byte {
	var text string
	switch {
	case len(value) == 0, string(value) == "null":
		return nil
	case json.Unmarshal(value, &text) == nil:
		return []byte(text)
	}
	return value
}

func (r *run) write(parts ...[]byte) error {
	for _, part := range parts {
		if _, err := r.out.Write(part); err != nil {
			return err
		}
	}
	return nil
}
