package cli

import (
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
)

// A block that was released has no owner until the end of its last second.
func TestReleasedBlock(t *testing.T) {
	at := time.Now()
	var g lease.Grant
	g.End = at.Add(time.Second)
	if text := state(g, at); text != "without an owner, free from "+rfc3339(g.End) {
		t.Errorf("it is %s", text)
	}
}
