package leasetest

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// BadNetwork decides what happens to the messages of clients, for a proxy: most are delivered and
// answered at once. It is safe for concurrent use.
type BadNetwork struct {
	// Every is set to n if one in n messages is to be late, lost or repeated; the default is 6.
	Every int64

	counts [fates]atomic.Int64
}

// fate is what happens to a message and its answer.
type fate int

const (
	passed      fate = iota
	slow             // delivered after a while, answered
	requestLost      // never delivered
	answerLost       // delivered, the client gets no answer
	late             // the client gives up; delivered long after that
	repeated         // delivered and answered, and delivered again
	fates
)

var fateNames = [fates]string{"passed", "slow", "request lost", "answer lost", "late", "repeated"}

// errGone is the error of a message whose client gets no answer.
var errGone = errors.New("the connection is gone")

// Send sends a message once, twice or not at all. If it returns an error, its client must see that the
// connection has ended.
//
// It calls deliver with whether the client gets the answer, and again for a message that arrives up to
// five seconds later: after its client gave up, after the end of the lease that it requests, or after the
// client has ended.
func (n *BadNetwork) Send(deliver func(answered bool) error, again func()) error {
	f := n.next()
	switch f {
	case slow:
		time.Sleep(rand.N(300 * time.Millisecond))
	case requestLost:
		return errGone
	case late, repeated:
		time.AfterFunc(rand.N(longest), again)
		if f == late {
			return errGone
		}
	}
	err := deliver(f != answerLost)
	if f == answerLost {
		return errGone
	}
	return err
}

// longest is how long a late message takes at most.
const longest = 5 * time.Second

// next returns the fate of the next message: each kind comes in turn.
func (n *BadNetwork) next() (f fate) {
	var sent int64
	for i := range n.counts {
		sent += n.counts[i].Load()
	}
	if every := cmp.Or(n.Every, 6); sent%every == every-1 {
		f = passed + 1 + fate(sent/every%int64(fates-1))
	}
	n.counts[f].Add(1)
	return f
}

// Check fails tb unless some message had each fate.
func (n *BadNetwork) Check(tb testing.TB) {
	tb.Helper()
	var parts []string
	for f := range n.counts {
		count := n.counts[f].Load()
		if parts = append(parts, fmt.Sprint(count, " ", fateNames[f])); count == 0 {
			tb.Errorf("no message was %s: that shows little", fateNames[f])
		}
	}
	tb.Log("messages: ", strings.Join(parts, ", "))
}
