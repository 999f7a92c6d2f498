package identify

import (
	"fmt"
	"regexp"
	"strings"
)

// Found is an ID in a line, with a kind that it may be of.
type Found struct {
	Role string `json:"role,omitempty"` // trace, span or parent, if the line says so
	ID   string `json:"id"`
	Identity
}

const (
	roleTrace  = "trace"
	roleSpan   = "span"
	roleParent = "parent"
)

// Line reads a line with one ID, which may begin with 0x; or a header (traceparent, b3 or one of
// its parts, x-trace-id, uber-trace-id or X-Amzn-Trace-Id, with or without its name); or a log
// record, in JSON or as name=value, with fields such as trace_id and spanId; or an address or text
// with a trace ID in hex. The error wraps [ErrUnknown]; the IDs that were understood are returned
// with it.
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

// split returns the IDs in a line, as they are written.
func split(line string) (found []Found, err error) {
	line = strings.TrimSpace(line)
	name, value, colon := strings.Cut(line, ":")
	if colon && line[0] == '{' {
		return jsonRecord(line)
	}
	if found = pairs(line); found != nil {
		return found, nil
	}
	if !colon || !isField(name) {
		name, value = "", line
	}
	found = field(name, value)
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: the header contains none", ErrUnknown)
	}
	if inText := words(line); name == "" && inText != nil && strings.ContainsAny(line, " \t/") {
		found = inText
	}
	return found, nil
}

// isField reports whether a header or a field with this name contains IDs.
func isField(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	return name == "traceparent" || name == "b3" || roleOf(name) != ""
}

// field returns the IDs in the value of a header or a field with this name. Without a name the form
// of the value decides.
func field(name, value string) []Found {
	name = strings.ToLower(strings.TrimSpace(name))
	value = strings.Trim(value, "\"'`,;()[]{} \t")
	if digits, ok := strings.CutPrefix(strings.ToLower(value), "0x"); ok && isHex(digits) {
		value = digits
	}
	dashes := strings.Split(value, "-")
	colons := strings.Split(strings.ReplaceAll(value, "%3A", ":"), ":")
	switch {
	case name == "traceparent",
		name == "" && len(dashes) == 4 && len(dashes[0]) == 2 && len(dashes[1]) == 32:
		return withRoles(dashes, "", roleTrace, roleSpan) // and a version, flags, perhaps more
	case name == "b3", name == "" && isB3(dashes):
		return withRoles(dashes, roleTrace, roleSpan, "", roleParent)
	case len(colons) == 4 && isHex(colons[0]) && (name != "" || len(colons[0]) > base32Digits):
		return jaeger(colons)
	case strings.Contains(value, "Root="):
		return xray(value)
	}
	return []Found{{Role: roleOf(name), ID: value}}
}

func isB3(dashes []string) bool {
	digits := len(dashes[0])
	return 2 <= len(dashes) && len(dashes) <= 4 && isHex(dashes[0]) &&
		(digits == 32 || digits == 16)
}

// jaeger returns the IDs in the fields of uber-trace-id: a trace, a span, a parent (0 if there is
// none) and flags.
func jaeger(fields []string) []Found {
	for i, id := range fields[:3] {
		fields[i] = padded(id)
	}
	if strings.Trim(fields[2], "0") == "" {
		fields = fields[:2]
	}
	return withRoles(fields, roleTrace, roleSpan, roleParent)
}

// padded returns hex digits with the leading zeros that Jaeger leaves out.
func padded(digits string) string {
	width := 16
	if len(digits) > width {
		width = 32
	}
	return strings.Repeat("0", max(width-len(digits), 0)) + digits
}

// xray returns the IDs in X-Amzn-Trace-Id: Root=…;Parent=…;Sampled=1.
func xray(value string) (found []Found) {
	for part := range strings.SplitSeq(value, ";") {
		switch name, id, _ := strings.Cut(strings.TrimSpace(part), "="); name {
		case "Root":
			found = append(found, Found{Role: roleTrace, ID: id})
		case "Parent":
			found = append(found, Found{Role: roleSpan, ID: id})
		}
	}
	return found
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

// roleOf returns the role of the ID in a field with this name, ignoring case and punctuation:
// trace_id, dd.traceId, X-B3-ParentSpanId.
func roleOf(name string) string {
	name = strings.NewReplacer("_", "", ".", "", "-", "").Replace(strings.ToLower(name))
	switch {
	case strings.HasSuffix(name, "traceid"):
		return roleTrace
	case strings.HasSuffix(name, "parentid"), strings.HasSuffix(name, "parentspanid"):
		return roleParent
	case strings.HasSuffix(name, "spanid"):
		return roleSpan
	}
	return ""
}

var hexWord = regexp.MustCompile(`(?i)\b([0-9a-f]{16}|[0-9a-f]{32})\b`)

// words returns the IDs in a text with a trace ID: the words of 32 hex digits, and of 16.
func words(text string) (found []Found) {
	traces := 0
	for _, word := range hexWord.FindAllString(text, -1) {
		role := roleSpan
		if len(word) == 32 {
			role = roleTrace
			traces++
		}
		found = append(found, Found{Role: role, ID: word})
	}
	if traces == 0 {
		return nil
	}
	return found
}
