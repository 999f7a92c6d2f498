package engine_test

import (
	"testing"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease/stores"
)

// A store that is restored to an old backup, again and again, grants nothing twice under one
// secret.
func TestRestored(t *testing.T) {
	server := new(counted)
	calls.Restored(t, func() (stores.Store, error) { return client(server, 2), nil })
}
