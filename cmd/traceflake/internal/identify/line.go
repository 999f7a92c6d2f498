package identify

import (
	"fmt"
	"strings"
)

// Found is an ID in a line.
type Found struct {
	Role       string // trace, span or parent, if a header names it
	ID         string
	Candidates []Candidate
}

// Line reads a line that holds one ID, or a header: traceparent, b3 or one of its parts,
// x-trace-id or X-Amzn-Trace-Id, with or without its name. The error wraps [ErrUnknown]; the
// parts that were understood are returned with it.
func (x Identifier) Line(line string) ([]Found, error) {
	ids, err := split(strings.TrimSpace(line))
	if err != nil {
		return nil, err
	}
	var found []Found
	for _, f := range ids {
		candidates, idErr := x.ID(f.ID)
		if idErr != nil {
			if f.Role != "" {
				idErr = fmt.Errorf("%s: %w", f.Role, idErr)
			}
			err = idErr
			continue
		}
		f.Candidates = candidates
		found = append(found, f)
	}
	return found, err
}

var roles = map[string]string{
	"x-trace-id":        "trace",
	"x-b3-traceid":      "trace",
	"x-b3-spanid":       "span",
	"x-b3-parentspanid": "parent",
}

func split(line string) ([]Found, error) {
	name, value, isHeader := strings.Cut(line, ":")
	name = strings.ToLower(strings.TrimSpace(name))
	value = strings.TrimSpace(value)
	if isHeader {
		switch name {
		case "traceparent":
			return traceparent(value)
		case "b3":
			return b3(value)
		case "x-amzn-trace-id":
			return amazon(value)
		}
		if role, ok := roles[name]; ok {
			return []Found{{Role: role, ID: unquote(value)}}, nil
		}
	}
	line = unquote(line)
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

func unquote(s string) string { return strings.Trim(s, `"', `) }

// traceparent reads version-trace-parent-flags. Later versions may have more.
func traceparent(s string) ([]Found, error) {
	fields := strings.Split(unquote(s), "-")
	if len(fields) < 4 || len(fields[0]) != 2 || len(fields[1]) != 32 || len(fields[2]) != 16 || !isHex(fields[0]) {
		return nil, fmt.Errorf("%w: the traceparent is not of the form 00-TRACE-SPAN-FLAGS with 32 and 16 hex digits", ErrUnknown)
	}
	return []Found{{Role: "trace", ID: fields[1]}, {Role: "span", ID: fields[2]}}, nil
}

// b3 reads trace-span, trace-span-sampled and trace-span-sampled-parent.
func b3(s string) ([]Found, error) {
	fields := strings.Split(unquote(s), "-")
	if len(fields) == 1 && len(fields[0]) <= 1 {
		return nil, fmt.Errorf("%w: this b3 header carries a sampling decision only", ErrUnknown)
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
	for field := range strings.SplitSeq(unquote(s), ";") {
		switch name, value, _ := strings.Cut(strings.TrimSpace(field), "="); name {
		case "Root":
			found = append(found, Found{Role: "trace", ID: value})
		case "Parent":
			found = append(found, Found{Role: "span", ID: value})
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: the X-Amzn-Trace-Id header has no Root and no Parent", ErrUnknown)
	}
	return found, nil
}

// TraceIDOf returns the text of the trace ID in a line that [Identifier.Line]
// reads, or the line itself if its form is unknown.
func TraceIDOf(line string) string {
	line = strings.TrimSpace(line)
	ids, err := split(line)
	if err != nil {
		return line
	}
	for _, f := range ids {
		if f.Role == "trace" || f.Role == "" {
			return f.ID
		}
	}
	return line
}
