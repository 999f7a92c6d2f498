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
var headers = map[string]func(string) []Found{
	"traceparent":       dashed("", "trace", "span", ""), // version, flags; later versions may have more
	"b3":                dashed("trace", "span", "", "parent"),
	"x-amzn-trace-id":   amazon,
	"x-trace-id":        dashed("trace"),
	"x-b3-traceid":      dashed("trace"),
	"x-b3-spanid":       dashed("span"),
	"x-b3-parentspanid": dashed("parent"),
}

// dashed returns a function that reads fields with these roles, separated by dashes. The last one
// may contain dashes.
func dashed(roles ...string) func(string) []Found {
	return func(value string) (found []Found) {
		for i, id := range strings.SplitN(value, "-", len(roles)) {
			if roles[i] != "" {
				found = append(found, Found{Role: roles[i], ID: id})
			}
		}
		return found
	}
}

// amazon reads Root=…;Parent=…;Sampled=….
func amazon(value string) (found []Found) {
	for field := range strings.SplitSeq(value, ";") {
		name, id, _ := strings.Cut(strings.TrimSpace(field), "=")
		if role := map[string]string{"Root": "trace", "Parent": "span"}[name]; role != "" {
			found = append(found, Found{Role: role, ID: id})
		}
	}
	return found
}

// split returns the IDs in a line, as they are written.
func split(line string) (found []Found, err error) {
	line = strings.TrimSpace(line)
	name, value, colon := strings.Cut(line, ":")
	read := headers[strings.ToLower(strings.TrimSpace(name))]
	if !colon || read == nil {
		read, value = nil, line
	}
	value = strings.Trim(value, "\"', \t")
	if digits, ok := strings.CutPrefix(strings.ToLower(value), "0x"); ok && isHex(digits) {
		value = digits
	}
	switch fields := strings.Split(value, "-"); {
	case colon && line[0] == '{':
		return record(line)
	case read != nil:
	case len(fields) == 4 && len(fields[0]) == 2 && len(fields[1]) == 32:
		read = headers["traceparent"]
	case len(fields) >= 2 && len(fields) <= 4 && isHex(fields[0]) && (len(fields[0]) == 32 || len(fields[0]) == 16):
		read = headers["b3"]
	case strings.HasPrefix(value, "Root="):
		read = amazon
	default:
		return []Found{{ID: value}}, nil
	}
	if found = read(value); len(found) == 0 {
		err = fmt.Errorf("%w: the header contains none", ErrUnknown)
	}
	return found, err
}

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
