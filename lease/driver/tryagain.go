package driver

import (
	"fmt"
	"time"
)

// TryAgain is the error of a request that an overloaded [Objects] refused without doing anything.
// The store repeats the request.
type TryAgain struct {
	Err error
	// After is the server's minimum wait before the request is repeated.
	After time.Duration
}

func (e *TryAgain) Error() string { return fmt.Sprint(e.Err) }
func (e *TryAgain) Unwrap() error { return e.Err }
