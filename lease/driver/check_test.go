package driver

import (
	"errors"
	"slices"
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
			t.Errorf("a holder with %q: %v", rune(c), err)
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

// What an option asks for is checked before a store says what is missing.
func TestCheckAsked(t *testing.T) {
	for _, tt := range []struct {
		r    NodeRange
		want error
	}{
		{NodeRange{}, nil},
		{NodeRange{BlockSize: 16}, nil},
		{NodeRange{BlockSize: 3}, lease.ErrInvalidRequest},
		{NodeRange{First: 3, Nodes: 5}, nil}, // of a store with blocks of one node
		{NodeRange{First: 3, Nodes: 5, BlockSize: 2}, lease.ErrInvalidRequest},
		{NodeRange{Nodes: randflake.MaxNode + 2}, lease.ErrInvalidRequest},
	} {
		if err := tt.r.CheckAsked(); !errors.Is(err, tt.want) {
			t.Errorf("%+v: %v, want %v", tt.r, err, tt.want)
		}
	}
}

// A number that no range can have stays one that every check refuses.
func TestCount(t *testing.T) {
	const none = 1<<32 - 1
	for n, want := range map[int]uint32{
		-1: none, 0: none, 1: 1, 2: 2, randflake.MaxNode + 2: randflake.MaxNode + 2,
	} {
		if got := Count(n, 1); got != want {
			t.Errorf("%d counts as %d, want %d", n, got, want)
		}
	}
	if got := Count(0, 0); got != 0 {
		t.Errorf("0 counts as %d", got)
	}
}

func TestMemoryOfACopy(t *testing.T) {
	few := NodeRange{First: 8, Nodes: 16, BlockSize: 8}
	held, _ := heldBlock() // of node 8
	outside, wide, last := held, held, held
	outside.Node, wide.Node, wide.Nodes, last.Node = 64, 16, 16, 16
	for name, tt := range map[string]struct{ blocks, want []lease.Block }{
		"both":           {[]lease.Block{lease.Block(held), lease.Block(last)}, []lease.Block{lease.Block(held), lease.Block(last)}},
		"one outside":    {[]lease.Block{lease.Block(outside), lease.Block(held)}, []lease.Block{lease.Block(held)}},
		"another size":   {[]lease.Block{lease.Block(wide)}, nil},
		"nothing to see": {nil, nil},
	} {
		got, err := NewMemory(WithNodeRange(few), WithBlocks(tt.blocks)).List(t.Context())
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	bad := NewMemory(WithNodeRange(NodeRange{Nodes: 8}), WithBlocks([]lease.Block{lease.Block(held)}))
	if _, err := bad.List(t.Context()); !errors.Is(err, lease.ErrInvalidRequest) {
		t.Errorf("a range that makes no sense: %v", err)
	}
}

func TestErrorsSayWhen(t *testing.T) {
	b, _ := heldBlock()
	_, err := b.Acquire(lease.Request{Nonce: fresh, Now: testStart, TTL: lease.DefaultTTL})
	if err == nil || !strings.Contains(err.Error(), "2026-05-04T03:02:11Z") {
		t.Errorf("got %v, want the time at which the block is free", err)
	}
}

func TestMemoryTakesTheLowestNodes(t *testing.T) {
	m := NewMemory(WithNodeRange(NodeRange{Nodes: 32, BlockSize: 8}))
	for i := range uint32(4) {
		r := lease.Request{Nonce: lease.NewNonce(), Now: testStart, TTL: lease.DefaultTTL}
		if g, err := m.Acquire(t.Context(), r); err != nil || g.Node != 8*i {
			t.Errorf("grant %d is of node %d, %v", i, g.Node, err)
		}
	}
}
