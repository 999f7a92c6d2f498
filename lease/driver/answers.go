package driver

import (
	"errors"
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

// ParseAnswers parses the answers in a file of the store's package. It panics if the text is not as
// in this example, whose first line has the code, the meaning and the text. The meaning is
// "refused" if an operator has to change something, "schema" if the data is another program's,
// "full" if there is no space left, "unavailable" if no server was reached, and "later" if the
// cause may pass otherwise:
//
//	08P01 refused no such database
//		create the database, or correct it in the URL
//		< no such database: other
//
// The lines after it are the fix, which may be continued, and recorded messages. "$NAME" is a
// [CommonFix]. Lines that begin with # are comments.
func ParseAnswers(table string) (rows Answers) {
	means := map[string]error{"refused": lease.ErrMisconfigured, "schema": lease.ErrSchemaVersion,
		"full": lease.ErrDiskFull, "unavailable": lease.ErrUnavailable, "later": nil}
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

// Mean returns an error with a meaning, an error of package lease. Only if an operator has to
// change something, the text says what it means.
func Mean(meaning, err error) error {
	switch {
	case meaning == nil || err == nil || errors.Is(err, meaning):
		return err
	case lease.Permanent(meaning):
		return fmt.Errorf("%w: %w", meaning, err)
	}
	return meant{err, meaning}
}

// Invalid returns an error that wraps [lease.ErrInvalidRequest], whose text is that of
// [fmt.Errorf].
func Invalid(format string, args ...any) error {
	return meant{fmt.Errorf(format, args...), lease.ErrInvalidRequest}
}

type meant struct{ err, meaning error }

func (m meant) Error() string   { return m.err.Error() }
func (m meant) Unwrap() []error { return []error{m.err, m.meaning} }

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

// Explain returns an error with the meaning and the fix of its row, or that of [Diagnose] without a
// row. words are pairs of a word in fixes and what replaces it.
func (rows Answers) Explain(code string, err error, words ...string) error {
	row := rows.Find(code, err.Error())
	if row.Fix == "" {
		return Diagnose(err)
	}
	return &lease.Error{Err: Mean(row.Means, err),
		Fix: strings.NewReplacer(words...).Replace(row.Fix)}
}
