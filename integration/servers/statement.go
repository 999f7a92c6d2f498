package servers

import (
	"regexp"
	"strings"
)

// The parts of a statement that the gateway must know before the engine reads it.
var (
	leadingComments = regexp.MustCompile(`^(?:\s|--[^\n]*(?:\n|$)|/\*(?s:.*?)\*/)+`)
	trailingFormat  = regexp.MustCompile(`(?is)\bFORMAT\s+(\w+)\s*(?:SETTINGS\s+[^']*)?;?\s*$`)
	insertFormat    = regexp.MustCompile(`(?is)^(.*?)\s*\bFORMAT\s+(\w+)\s*;?\s*$`)
	insertValues    = regexp.MustCompile(`(?is)^(.*?)\s*\bVALUES\s*;?\s*$`)
)

// keyword is the statement's first word in upper case.
func keyword(sql string) string {
	sql = sql[len(leadingComments.FindString(sql)):]
	end := strings.IndexFunc(sql, func(r rune) bool { return (r|' ') < 'a' || (r|' ') > 'z' })
	if end < 0 {
		end = len(sql)
	}
	return strings.ToUpper(sql[:end])
}

// outputFormat is the format of the result.
func outputFormat(sql, otherwise string) string {
	if m := trailingFormat.FindStringSubmatch(sql); m != nil {
		return m[1]
	}
	return otherwise
}

// splitInsert takes an INSERT whose rows are sent separately, and returns it
// without its format clause, and the format. ok is false for any other statement.
func splitInsert(sql string) (statement, format string, ok bool) {
	if keyword(sql) != "INSERT" {
		return "", "", false
	}
	if m := insertFormat.FindStringSubmatch(sql); m != nil {
		return m[1], m[2], true
	}
	if m := insertValues.FindStringSubmatch(sql); m != nil {
		return m[1], "Values", true
	}
	return "", "", false
}
