package driver

import (
	"fmt"
	"time"
)

// Busy is the error of a request that an overloaded [Objects] refused without doing anything. The
// store repeats the request.
type Busy struct {
	Err error
	// After is the server's minimum wait before the request is repeated.
	After time.Duration
}

func (b *Busy) Error() string { return fmt.Sprint(b.Err) }
func (b *Busy) Unwrap() error { return b.Err }
