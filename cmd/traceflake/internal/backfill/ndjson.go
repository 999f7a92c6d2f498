package backfill

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

func (r *run) ndjson(ctx context.Context) error {
	name, err := json.Marshal(r.IDField)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(r.in)
	lines.Buffer(make([]byte, 1<<16), MaxRecord)
	lines.Split(wholeLines)
	begins, number := true, int64(1) // whether the next piece begins a line, and which
	for lines.Scan() {
		line := lines.Bytes()
		ends := bytes.HasSuffix(line, []byte("\n"))
		switch {
		case !begins: // the rest of a long line
			err = r.write(line)
		case !ends && len(line) == MaxRecord:
			r.failed(number, errLong)
			err = errors.Join(r.write(line), r.done(ctx))
		case len(bytes.TrimSpace(line)) == 0:
			err = r.write(line)
		default:
			err = errors.Join(r.object(number, line, name), r.done(ctx))
		}
		if err != nil {
			return err
		}
		if begins = ends; ends {
			number++
		}
	}
	return lines.Err()
}

// wholeLines splits text into lines with their ends, and a longer one into pieces of MaxRecord.
func wholeLines(text []byte, atEOF bool) (advance int, line []byte, err error) {
	n := bytes.IndexByte(text, '\n') + 1
	if n == 0 && (atEOF || len(text) == MaxRecord) {
		n = len(text)
	}
	if n == 0 {
		return 0, nil, nil // more is needed
	}
	return n, text[:n], nil
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

var errNoObject = badRecord{errors.New("not a whole JSON object")}

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
		return "", badRecord{fmt.Errorf("there is no field %q", r.TimeField)}
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
