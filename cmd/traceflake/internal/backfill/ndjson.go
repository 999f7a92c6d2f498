package backfill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tidwall/gjson"
)

func (r *run) ndjson(ctx context.Context) error {
	name, err := json.Marshal(r.IDField)
	if err != nil {
		return err
	}
	if _, err := r.out.Write(r.in.bom()); err != nil {
		return err
	}
	for {
		line, err := r.in.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			if _, err := r.out.Write(line); err != nil {
				return err
			}
			continue
		}
		if r.in.long {
			r.failed(r.in.number, errLong)
			if err := r.copyLong(line); err != nil {
				return err
			}
		} else if err := r.object(line, name); err != nil {
			return err
		}
		if err := r.done(ctx); err != nil {
			return err
		}
	}
}

// copyLong copies the rest of a line that is too long.
func (r *run) copyLong(line []byte) error {
	for {
		if _, err := r.out.Write(line); err != nil || !r.in.long {
			return err
		}
		var err error
		if line, err = r.in.next(); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
}

// object copies one line and inserts the ID.
func (r *run) object(line, name []byte) error {
	at, insert, err := r.splice(line, name)
	if err != nil {
		var bad badRecord
		if !errors.As(err, &bad) {
			return err
		}
		r.failed(r.in.number, bad.error)
		_, err = r.out.Write(line)
		return err
	}
	for _, part := range [][]byte{line[:at[0]], insert, line[at[1]:]} {
		if _, err := r.out.Write(part); err != nil {
			return err
		}
	}
	return nil
}

var errNoObject = errors.New("the line is not a JSON object; was it truncated?")

// splice returns which bytes of the line to replace, and with what.
func (r *run) splice(line, name []byte) (at [2]int, insert []byte, err error) {
	// Valid also limits the nesting depth.
	text := content(line)
	if !json.Valid(text) {
		return at, nil, badRecord{errNoObject}
	}
	object := gjson.ParseBytes(text)
	if !object.IsObject() {
		return at, nil, badRecord{errNoObject}
	}
	var present gjson.Result
	end := -1
	object.ForEach(func(field, value gjson.Result) bool {
		end = value.Index + len(value.Raw)
		if field.Str == r.IDField {
			present = value
		}
		return true
	})
	if present.Exists() && present.Type != gjson.Null && present.Raw != `""` {
		r.Kept++
		return at, nil, nil
	}
	var key gjson.Result
	if r.KeyField != "" {
		key = lookup(object, r.KeyField)
	}
	when := lookup(object, r.TimeField)
	switch {
	case !when.Exists():
		return at, nil, badRecord{fmt.Errorf("it has no field %q", r.TimeField)}
	case when.Type == gjson.String:
	case when.Type == gjson.Number:
		when.Str = when.Raw
	default:
		return at, nil, badRecord{fmt.Errorf("field %q is neither text nor a number", r.TimeField)}
	}
	id, err := r.id(when.Str, keyBytes(key), text)
	if err != nil {
		return at, nil, err
	}
	r.Added++
	if present.Exists() {
		return [2]int{present.Index, present.Index + len(present.Raw)}, fmt.Appendf(nil, `"%s"`, id), nil
	}
	return [2]int{end, end}, fmt.Appendf(nil, `,%s:"%s"`, name, id), nil
}

// lookup returns the field with this name. If there is none, dots in the name lead into nested
// objects. If several fields have the name, it returns the last one, as most JSON readers do.
func lookup(object gjson.Result, name string) (found gjson.Result) {
	object.ForEach(func(field, value gjson.Result) bool {
		if field.Str == name {
			found = value
		}
		return true
	})
	for i := 0; !found.Exists() && i < len(name); i++ {
		if dot := strings.IndexByte(name[i:], '.'); dot >= 0 {
			i += dot
			if outer := lookup(object, name[:i]); outer.IsObject() {
				found = lookup(outer, name[i+1:])
			}
		}
	}
	return found
}

func keyBytes(key gjson.Result) []byte {
	switch key.Type {
	case gjson.Null:
		return nil
	case gjson.String:
		return []byte(key.Str)
	}
	return []byte(key.Raw)
}
