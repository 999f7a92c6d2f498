package driver

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

func TestHolderHasHexDigits(t *testing.T) {
	r := lease.Request{Now: testStart, TTL: lease.DefaultTTL}
	for c := range 0x100 {
		r.Nonce = strings.Repeat("0", nonceLen-1) + string(rune(c))
		good := strings.ContainsRune("0123456789abcdef", rune(c))
		if err := CheckRequest(r, testStart); (err == nil) != good {
			t.Errorf("a nonce with %q: %v", rune(c), err)
		}
	}
}

func TestCheckRaise(t *testing.T) {
	epoch, end := time.Unix(randflake.Epoch, 0), time.Unix(randflake.EndOfLife, 0)
	for _, tt := range []struct {
		until time.Time
		want  error
	}{
		{epoch.Add(-1), randflake.ErrBeforeEpoch},
		{epoch, nil},
		{end.Add(-time.Second + 1), nil},
		{end, nil},
		{end.Add(1), randflake.ErrEndOfLife},
	} {
		if err := CheckRaise(tt.until); !errors.Is(err, tt.want) {
			t.Errorf("to %v: %v, want %v", tt.until, err, tt.want)
		}
	}
}

// Zero fields of a range take the store's values.
func TestResolve(t *testing.T) {
	for _, tt := range []struct {
		r    NodeRange
		size uint32 // the store's, 0 for a new one
		want NodeRange
		err  error
	}{
		{NodeRange{}, 0, AllNodes, nil},
		{NodeRange{}, 16, NodeRange{Nodes: AllNodes.Nodes, BlockSize: 16}, nil},
		{NodeRange{BlockSize: 16}, 0, NodeRange{Nodes: AllNodes.Nodes, BlockSize: 16}, nil},
		{NodeRange{BlockSize: 16}, 8, NodeRange{}, lease.ErrBlockSize},
		{NodeRange{BlockSize: 3}, 0, NodeRange{}, lease.ErrInvalidRequest},
		{NodeRange{First: 3, Nodes: 5}, 1, NodeRange{First: 3, Nodes: 5, BlockSize: 1}, nil},
		{NodeRange{First: 3, Nodes: 5}, 0, NodeRange{}, lease.ErrInvalidRequest},
		{NodeRange{First: 3, Nodes: 5, BlockSize: 2}, 0, NodeRange{}, lease.ErrInvalidRequest},
		{NodeRange{First: 8}, 0, NodeRange{}, lease.ErrInvalidRequest},
		{NodeRange{Nodes: randflake.MaxNode + 2}, 0, NodeRange{}, lease.ErrInvalidRequest},
	} {
		if got, err := tt.r.Resolve(tt.size); !errors.Is(err, tt.err) || err == nil && got != tt.want {
			t.Errorf("%+v of blocks of %d: %+v, %v", tt.r, tt.size, got, err)
		}
	}
}
