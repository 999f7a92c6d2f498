package clickhouse

import (
	"regexp"
	"strings"
)

// masked returns s with everything that is quoted or in parentheses replaced by x.
func masked(s string) string {
	out, depth, quote := []byte(s), 0, byte(0)
	for i := 0; i < len(s); i++ {
		inside := quote != 0 || depth > 0
		switch c := s[i]; {
		case quote != 0 && c == '\\':
			out[i] = 'x'
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '`' || c == '"':
			quote = c
		case c == '(':
			depth++
		case c == ')':
			depth--
			inside = depth > 0
		}
		if inside && i < len(out) {
			out[i] = 'x'
		}
	}
	return string(out)
}

// cutOuter cuts s around what its first parentheses contain.
func cutOuter(s string) (before, inner, after string) {
	m := masked(s)
	open, end := strings.IndexByte(m, '('), strings.IndexByte(m, ')')
	if open < 0 || end < open {
		return s, "", ""
	}
	return s[:open], s[open+1 : end], s[end+1:]
}

// splitOuter splits s at its commas.
func splitOuter(s string) (all []string) {
	m, from := masked(s), 0
	for i := range len(m) {
		if m[i] == ',' {
			all, from = append(all, strings.TrimSpace(s[from:i])), i+1
		}
	}
	if last := strings.TrimSpace(s[from:]); last != "" {
		all = append(all, last)
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

var columnDefinition = regexp.MustCompile("^`((?:[^`\\\\]|\\\\.)*)` ")

// columnName is the name of a column in an element of CREATE TABLE, "" for an index and others.
func columnName(element string) string {
	m := columnDefinition.FindStringSubmatch(element)
	if m == nil {
		return ""
	}
	return strings.NewReplacer("\\`", "`", `\\`, `\`, `\'`, `'`).Replace(m[1])
}
