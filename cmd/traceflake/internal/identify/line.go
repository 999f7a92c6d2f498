package identify

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Found is an ID in a line.
type Found struct {
	Role       string      `json:"role,omitempty"` // trace, span or parent, if the line says so
	ID         string      `json:"id"`
	Candidates []Candidate `json:"candidates"`
}

// Line reads a line with one ID, which may begin with 0x; or a header (traceparent, b3 or one of
// its parts, x-trace-id or X-Amzn-Trace-Id, with or without its name); or a log record in JSON with
// fields such as trace_id and spanId. The error wraps [ErrUnknown]; the IDs that were understood
// are returned with it.
func (x Identifier) Line(line string) (found []Found, err error) {
	ids, err := split(line)
	if err != nil {
		return nil, err
	}
	for _, f := range ids {
		candidates, idErr := x.ID(f.ID)
		switch {
		case idErr == nil:
			f.Candidates = candidates
			found = append(found, f)
		case f.Role != "":
			err = fmt.Errorf("%s: %w", f.Role, idErr)
		default:
			err = idErr
		}
	}
	return found, err
}

// TraceIDOf returns the text of the trace ID in a line that [Identifier.Line]
// reads, or the line itself if its form is unknown.
func TraceIDOf(line string) string {
	ids, _ := split(line)
	for _, f := range ids {
		if f.Role == "trace" || f.Role == "" {
			return f.ID
		}
	}
	return strings.TrimSpace(line)
}

// headers are the functions that read the value of a header.
var headers = map[string]func(string) ([]Found, error){
	"traceparent":       traceparent,
	"b3":                b3,
	"x-amzn-trace-id":   amazon,
	"x-trace-id":        single("trace"),
	"x-b3-traceid":      single("trace"),
	"x-b3-spanid":       single("span"),
	"x-b3-parentspanid": single("parent"),
}

func single(role string) func(string) ([]Found, error) {
	return func(value string) ([]Found, error) { return []Found{{Role: role, ID: value}}, nil }
}

func split(line string) ([]Found, error) {
	line = strings.TrimSpace(line)
	name, value, colon := strings.Cut(line, ":")
	if colon && line[0] == '{' {
		return record(line)
	}
	if read := headers[strings.ToLower(strings.TrimSpace(name))]; colon && read != nil {
		return read(unquote(value))
	}
	line = unquote(line)
	if digits, ok := strings.CutPrefix(strings.ToLower(line), "0x"); ok && isHex(digits) {
		line = digits
	}
	switch fields := strings.Split(line, "-"); {
	case len(fields) == 4 && len(fields[0]) == 2 && len(fields[1]) == 32:
		return traceparent(line)
	case len(fields) >= 2 && len(fields) <= 4 && isHex(fields[0]) && (len(fields[0]) == 32 || len(fields[0]) == 16):
		return b3(line)
	case strings.HasPrefix(line, "Root="):
		return amazon(line)
	}
	return []Found{{ID: line}}, nil
}

func unquote(s string) string { return strings.Trim(s, "\"', \t") }

// record reads the IDs in the fields of a JSON object and of the objects in it.
func record(line string) ([]Found, error) {
	var object map[string]any
	in := json.NewDecoder(strings.NewReader(line))
	in.UseNumber()
	if err := in.Decode(&object); err != nil {
		return nil, fmt.Errorf("%w: the line begins as a JSON object and does not end as one", ErrUnknown)
	}
	found := idFields(nil, "", object)
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: the JSON object has no field such as trace_id or span_id", ErrUnknown)
	}
	return found, nil
}

// idFields adds the IDs in fields whose names end as those of IDs do, whatever their case and
// punctuation: trace_id, dd.traceId, trace: {id: …}.
func idFields(found []Found, path string, object map[string]any) []Found {
	for _, field := range slices.Sorted(maps.Keys(object)) {
		name := path + strings.NewReplacer("_", "", ".", "", "-", "").Replace(strings.ToLower(field))
		if inner, ok := object[field].(map[string]any); ok {
			found = idFields(found, name, inner)
			continue
		}
		role := ""
		switch {
		case strings.HasSuffix(name, "traceid"):
			role = "trace"
		case strings.HasSuffix(name, "parentid"), strings.HasSuffix(name, "parentspanid"):
			role = "parent"
		case strings.HasSuffix(name, "spanid"):
			role = "span"
		}
		if value := fmt.Sprint(object[field]); role != "" && object[field] != nil && value != "" {
			found = append(found, Found{Role: role, ID: value})
		}
	}
	return found
}

// traceparent reads version-trace-parent-flags. Later versions may have more.
func traceparent(s string) ([]Found, error) {
	fields := strings.Split(s, "-")
	if len(fields) < 4 || len(fields[0]) != 2 || len(fields[1]) != 32 || len(fields[2]) != 16 || !isHex(fields[0]) {
		return nil, fmt.Errorf("%w: the traceparent is not of the form 00-TRACE-SPAN-FLAGS with 32 and 16 hex digits", ErrUnknown)
	}
	return []Found{{Role: "trace", ID: fields[1]}, {Role: "span", ID: fields[2]}}, nil
}

// b3 reads trace-span, trace-span-sampled and trace-span-sampled-parent.
func b3(s string) ([]Found, error) {
	fields := strings.Split(s, "-")
	if len(fields) == 1 && len(fields[0]) <= 1 {
		return nil, fmt.Errorf("%w: this b3 header contains only a sampling decision", ErrUnknown)
	}
	if len(fields) < 2 || len(fields) > 4 {
		return nil, fmt.Errorf("%w: the b3 header is not of the form TRACE-SPAN-SAMPLED-PARENT", ErrUnknown)
	}
	found := []Found{{Role: "trace", ID: fields[0]}, {Role: "span", ID: fields[1]}}
	if len(fields) == 4 {
		found = append(found, Found{Role: "parent", ID: fields[3]})
	}
	return found, nil
}

// amazon reads Root=…;Parent=…;Sampled=….
func amazon(s string) ([]Found, error) {
	var found []Found
	for field := range strings.SplitSeq(s, ";") {
		switch name, value, _ := strings.Cut(strings.TrimSpace(field), "="); name {
		case "Root":
			found = append(found, Found{Role: "trace", ID: value})
		case "Parent":
			found = append(found, Found{Role: "span", ID: value})
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: the X-Amzn-Trace-Id header has neither Root nor Parent", ErrUnknown)
	}
	return found, nil
}
