package lease

import (
	"errors"
	"fmt"
	"strings"
)

// Error is an error with what an operator can do about it. Stores return it where the cause is
// known. Its text is that of Err; reports and commands add the fix, see [Advise].
type Error struct {
	Err error
	// Fix tells what to do, such as "grant the role the right to read the table": an imperative
	// clause without a full stop. It contains no secret, and following it loses nothing.
	Fix string
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

func fixable(text, fix string) error { return &Error{errors.New(text), fix} }

// Fix returns what an operator can do about an error, or "".
func Fix(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Fix
	}
	return ""
}

// Advise adds the fix of an error to its text, once.
func Advise(err error) error {
	if fix := Fix(err); fix != "" && !strings.Contains(err.Error(), fix) {
		return fmt.Errorf("%w; %s", err, fix)
	}
	return err
}
