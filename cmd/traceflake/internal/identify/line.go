package identify

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Found is what an ID in a line may be.
type Found struct {
	Role string `json:"role,omitempty"` // trace, span or parent, if the line says so
	ID   string `json:"id"`
	Identity
}

// Line reads a line with one ID, which may begin with 0x; or a header (traceparent, b3 or one of
// its parts, x-trace-id or X-Amzn-Trace-Id, with or without its name); or a log record in JSON with
// fields such as trace_id and spanId. The error wraps [ErrUnknown]; the IDs that were understood are returned with
// it.
func (x Identifier) Line(line string) (all []Found, err error) {
	ids, err := split(line)
	for _, f := range ids {
		found, idErr := x.ID(f.ID)
		if idErr != nil {
			err = idErr
			if f.Role != "" {
				err = fmt.Errorf("%s: %w", f.Role, idErr)
			}
		}
		for _, identity := range found {
			all = append(all, Found{f.Role, f.ID, identity})
		}
	}
	return all, err
}

// TraceIDOf returns the text of the trace ID in a line that [Identifier.Line] reads, or the line
// itself if its form is unknown.
func TraceIDOf(line string) string {
	ids, _ := split(line)
	for _, f := range ids {
		if f.Role == "trace" || f.Role == "" {
			return f.ID
		}
	}
	return strings.TrimSpace(line)
}

// split returns the IDs in a line, as they are written.
func split(line string) (found []Found, err error) {
	line = strings.TrimSpace(line)
	name, value, colon := strings.Cut(line, ":")
	if colon && line[0] == '{' {
		return record(line)
	}
	name = strings.ToLower(strings.TrimSpace(name))
	role := roleOf(name)
	if !colon || role == "" && name != "traceparent" && name != "b3" {
		name, role, value = "", "", line
	}
	value = strings.Trim(value, "\"', \t")
	if digits, ok := strings.CutPrefix(strings.ToLower(value), "0x"); ok && isHex(digits) {
		value = digits
	}
	switch fields := strings.Split(value, "-"); {
	case name == "traceparent", name == "" && len(fields) == 4 && len(fields[0]) == 2 && len(fields[1]) == 32:
		found = withRoles(fields, "", "trace", "span") // and a version, flags, perhaps more
	case name == "b3", name == "" && 2 <= len(fields) && len(fields) <= 4 && isHex(fields[0]) && (len(fields[0]) == 32 || len(fields[0]) == 16):
		found = withRoles(fields, "trace", "span", "", "parent")
	case strings.Contains(value, "Root="): // X-Amzn-Trace-Id: Root=…;Parent=…;Sampled=1
		for field := range strings.SplitSeq(value, ";") {
			name, id, _ := strings.Cut(strings.TrimSpace(field), "=")
			if role, ok := map[string]string{"Root": "trace", "Parent": "span"}[name]; ok {
				found = append(found, Found{Role: role, ID: id})
			}
		}
	default:
		found = []Found{{Role: role, ID: value}}
	}
	if len(found) == 0 {
		err = fmt.Errorf("%w: the header contains none", ErrUnknown)
	}
	return found, err
}

// withRoles returns the fields that have a role.
func withRoles(fields []string, roles ...string) (found []Found) {
	for i, role := range roles {
		if i < len(fields) && role != "" {
			found = append(found, Found{Role: role, ID: fields[i]})
		}
	}
	return found
}

// roleOf returns the role of the ID in a field with this name, whatever its case and punctuation:
// trace_id, dd.traceId, X-B3-ParentSpanId.
func roleOf(name string) string {
	name = strings.NewReplacer("_", "", ".", "", "-", "").Replace(strings.ToLower(name))
	switch {
	case strings.HasSuffix(name, "traceid"):
		return "trace"
	case strings.HasSuffix(name, "parentid"), strings.HasSuffix(name, "parentspanid"):
		return "parent"
	case strings.HasSuffix(name, "spanid"):
		return "span"
	}
	return ""
}

// record reads the IDs in the fields of a JSON object and of the objects in it.
func record(line string) ([]Found, error) {
	var object map[string]any
	if err := json.NewDecoder(strings.NewReader(line)).Decode(&object); err != nil {
		return nil, fmt.Errorf("%w: the line begins as a JSON object and does not end as one", ErrUnknown)
	}
	found := idFields(nil, "", object)
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: the JSON object has no field such as trace_id or span_id", ErrUnknown)
	}
	return found, nil
}

// idFields adds the IDs in the fields of an object, whose names may be spread over nested objects:
// trace: {id: …}.
func idFields(found []Found, path string, object map[string]any) []Found {
	for _, field := range slices.Sorted(maps.Keys(object)) {
		switch value := object[field].(type) {
		case map[string]any:
			found = idFields(found, path+field, value)
		case string:
			if role := roleOf(path + field); role != "" && value != "" {
				found = append(found, Found{Role: role, ID: value})
			}
		}
	}
	return found
}
