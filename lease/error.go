package lease

// Error is an error with what an operator can do about it. Stores return it where the cause is
// known; Error returns both.
type Error struct {
	Err error
	// Fix tells what to do, such as "grant the role the right to read the table": an imperative
	// clause without a full stop. It contains no secret.
	Fix string
}

func (e *Error) Error() string { return e.Err.Error() + "; " + e.Fix }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }
