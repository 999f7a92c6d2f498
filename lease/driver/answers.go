package driver

import (
	"fmt"
	"strings"

	"github.com/traceflake/traceflake/lease"
)

// Answer is what a kind of server answers, what it means, and what an operator can do.
type Answer struct {
	// Code is the server's code for it, or "-" for each.
	Code string
	// Text is a part of the server's message, in lower case, which tells this answer from others
	// with the same code, or "" for each.
	Text string
	// Means is an error of package lease, or nil if the cause may pass by itself.
	Means error
	// Fix is that of a lease.Error.
	Fix string
	// Recorded are messages of real servers, which tests replay.
	Recorded []string
}

// Answers are tried in their order.
type Answers []Answer

// ParseAnswers parses a table of answers, in a file beside the store. It panics if the table is not
// as in this example, whose first line has the code, the meaning ("refused": an operator has to
// change something; "schema": the data is another program's; "later": the cause may pass) and the
// text:
//
//	08P01 refused no such database
//		create the database, or correct it in the URL
//		< no such database: other
//
// The lines after it are the fix, which may be continued, and recorded messages. "$NAME" is a
// [CommonFix]. Lines that begin with # are comments.
func ParseAnswers(table string) (rows Answers) {
	means := map[string]error{"refused": lease.ErrMisconfigured, "schema": lease.ErrSchemaVersion,
		"later": nil}
	for line := range strings.Lines(table) {
		text, continued := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "\t")
		recorded, isRecorded := strings.CutPrefix(text, "< ")
		switch {
		case text == "" || text[0] == '#':
		case !continued:
			words := strings.SplitN(text+"  ", " ", 3)
			meaning, known := means[words[1]]
			if !known {
				panic(fmt.Sprintf("driver: the answer %q has no meaning", text))
			}
			rows = append(rows,
				Answer{Code: words[0], Text: strings.TrimSpace(words[2]), Means: meaning})
		case isRecorded:
			last := &rows[len(rows)-1]
			last.Recorded = append(last.Recorded, recorded)
		default:
			last := &rows[len(rows)-1]
			if name, common := strings.CutPrefix(text, "$"); common {
				text = CommonFix(name)
			}
			last.Fix = strings.TrimSpace(last.Fix + " " + text)
		}
	}
	return rows
}

// Find returns the first row for an answer, or the zero Answer.
func (rows Answers) Find(code, message string) Answer {
	message = strings.ToLower(message)
	for _, row := range rows {
		if (row.Code == "-" || row.Code == code) && strings.Contains(message, row.Text) {
			return row
		}
	}
	return Answer{}
}
