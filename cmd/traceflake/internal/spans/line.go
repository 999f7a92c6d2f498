package spans

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// Line writes parts of OTLP JSON as one object, on a line of its own, without keeping them.
type Line struct {
	w     io.Writer
	key   string
	begun bool
}

// NewLine returns a line for objects of one key: resourceSpans or resourceLogs.
func NewLine(w io.Writer, key string) *Line { return &Line{w: w, key: key} }

// Begun reports whether something was added.
func (l *Line) Begun() bool { return l.begun }

// Add writes the elements of a part. A part without any is not written.
func (l *Line) Add(body []byte) error {
	var part map[string]json.RawMessage
	if err := json.Unmarshal(body, &part); err != nil {
		return err
	}
	elements := bytes.TrimSuffix(bytes.TrimPrefix(part[l.key], []byte("[")), []byte("]"))
	if len(elements) == 0 {
		return nil
	}
	before := ","
	if !l.begun {
		before = fmt.Sprintf("{%q:[", l.key)
	}
	l.begun = true
	_, err := fmt.Fprintf(l.w, "%s%s", before, elements)
	return err
}

// End ends the line. Without elements it is an empty object.
func (l *Line) End() error {
	end := "]}\n"
	if !l.begun {
		end = "{}\n"
	}
	_, err := io.WriteString(l.w, end)
	return err
}
