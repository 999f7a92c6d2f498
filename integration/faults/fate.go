package faults

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// fate is what happens to a message and its response.
type fate int

const (
	passed      fate = iota
	slow             // delivered after a while, answered
	requestLost      // never delivered
	answerLost       // delivered, the client gets no response
	late             // the client gives up; delivered long after that
	doubled          // delivered and answered, and delivered again
	fates
)

var names = [fates]string{"passed", "slow", "request lost", "answer lost", "late", "doubled"}

// fateOf is the fate of the nth message: one in six has one, each kind in turn.
func fateOf(n int64) fate {
	if n%6 < 5 {
		return passed
	}
	return passed + 1 + fate(n/6%int64(fates-1))
}

// moment is how long a slow message takes, and while how long a late one does,
// for workers whose leases last two seconds.
func moment() time.Duration { return time.Duration(rand.Int64N(int64(300 * time.Millisecond))) }
func while() time.Duration  { return time.Duration(rand.Int64N(int64(5 * time.Second))) }

// Counts is how many messages had each fate.
type Counts [fates]atomic.Int64

// draw picks the next message's fate and counts it.
func (c *Counts) draw() fate {
	var n int64
	for f := range c {
		n += c[f].Load()
	}
	f := fateOf(n)
	c[f].Add(1)
	return f
}

func (c *Counts) String() string {
	var parts []string
	for f := range c {
		parts = append(parts, fmt.Sprintf("%d %s", c[f].Load(), names[f]))
	}
	return strings.Join(parts, ", ")
}

// Check fails tb unless some message had each fate.
func (c *Counts) Check(tb testing.TB) {
	tb.Helper()
	tb.Log("messages: ", c)
	for f := range c {
		if c[f].Load() == 0 {
			tb.Errorf("no message was %s: that shows little", names[f])
		}
	}
}
