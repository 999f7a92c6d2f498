package driver

import (
	"errors"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

func TestCheckRaise(t *testing.T) {
	epoch, end := time.Unix(randflake.Epoch, 0), time.Unix(randflake.EndOfLife, 0)
	for until, want := range map[time.Time]error{
		epoch.Add(-1): randflake.ErrBeforeEpoch, epoch: nil, end.Add(-time.Second + 1): nil, end: nil, end.Add(1): randflake.ErrEndOfLife,
	} {
		if err := CheckRaise(until); !errors.Is(err, want) {
			t.Errorf("to %v: %v, want %v", until, err, want)
		}
	}
}

func TestDescriptions(t *testing.T) {
	d, err := NewDescription(lease.Description{Created: testStart.Add(time.Millisecond), Raised: testStart.Add(time.Millisecond)})
	if err != nil || RangeOf(d) != AllNodes || d.LongestTTL != lease.DefaultTTL || !d.Created.Equal(testStart) || !d.Raised.Equal(at(time.Second)) {
		t.Errorf("got %+v, %v", d, err)
	}
	if other, err := NewDescription(lease.Description{}); err != nil || other.ID == d.ID {
		t.Errorf("IDs %q and %q, %v", d.ID, other.ID, err)
	}
	for name, d := range map[string]lease.Description{
		"nodes without a number": {First: 8}, "half a block": {Nodes: 4}, "an ID": {ID: "orders"}, "a TTL": {LongestTTL: 1500 * time.Millisecond},
		"a secret": {Secrets: []string{"0123456789abcdef", "hunter2"}}, "a raise": {Raised: time.Unix(randflake.EndOfLife+1, 0)},
	} {
		if _, err := NewDescription(d); !errors.Is(err, lease.ErrInvalidRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRaiseTo(t *testing.T) {
	for _, tt := range []struct{ raised, until, want time.Duration }{
		{0, time.Hour, time.Hour},
		{0, time.Hour + 1, time.Hour + time.Second},
		{lease.MaxClockAhead + 1, time.Hour, lease.MaxClockAhead + 1}, // it lasts
		{lease.MaxClockAhead, time.Hour, time.Hour},                   // a client that is ahead may have a later grant
		{2 * time.Hour, time.Hour, 2 * time.Hour},
		{-time.Hour, time.Hour, time.Hour},
	} {
		d := lease.Description{Raised: at(tt.raised)}
		if got := RaiseTo(d, at(tt.until), testStart); !got.Equal(at(tt.want)) {
			t.Errorf("raised to %s, and now to %s: %s, want %s", tt.raised, tt.until, got.Sub(testStart), tt.want)
		}
	}
	if got := AfterLeases(testStart.Add(1), lease.MaxTTL); got != at(lease.MaxTTL+Margin+time.Second) {
		t.Errorf("every lease is over at %s", got)
	}
	if got := AfterLeases(time.Unix(randflake.EndOfLife, 0), time.Hour); got.Unix() != randflake.EndOfLife {
		t.Errorf("every lease is over at %s", got)
	}
}
