package clickhouse

import (
	"regexp"
	"strings"
)

var (
	quoted    = regexp.MustCompile("(?s)'(?:[^'\\\\]|\\\\.)*'|`(?:[^`\\\\]|\\\\.)*`")
	innermost = regexp.MustCompile(`\([^()]*\)`)
	// elementName matches the beginning of an element: a column's quoted name, or the kind and the
	// name of something else.
	elementName = regexp.MustCompile("^(?:[A-Z]+ )?(?:`(?:[^`\\\\]|\\\\.)*`|\\S+)")
)

// masked returns s with everything that is quoted or in parentheses replaced by x.
func masked(s string) string {
	mask := func(s string) string { return strings.Repeat("x", len(s)) }
	s = quoted.ReplaceAllStringFunc(s, mask)
	for innermost.MatchString(s) {
		s = innermost.ReplaceAllStringFunc(s, mask)
	}
	return s
}

// elements returns the columns, indexes and others of a table, from its CREATE TABLE.
func elements(create string) []string {
	m := masked(create)
	end := strings.Index(m, " ENGINE = ")
	if end < 0 {
		return nil
	}
	return split(create[strings.LastIndex(m[:end], " ")+2 : end-1])
}

// split splits s at its commas.
func split(s string) (all []string) {
	for part := range strings.SplitSeq(masked(s), ",") {
		if element := strings.TrimSpace(s[:len(part)]); element != "" {
			all = append(all, element)
		}
		s = s[min(len(part)+1, len(s)):]
	}
	return all
}

// clause returns a clause of a table's engine, as in system.tables.
func clause(full, keyword string) string {
	m := masked(full)
	at := strings.Index(m, " "+keyword+" ")
	if at < 0 {
		return ""
	}
	at += len(keyword) + 2
	end := len(full)
	if next := strings.Index(m[at:], " SETTINGS "); next >= 0 {
		end = at + next
	}
	return full[at:end]
}
