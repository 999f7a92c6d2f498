// Package reports passes errors to a handler that may block. It is shared by idgen and lease, which
// do not import each other, and by fleet.
package reports

import (
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
)

// Recovered is a report of a recovery.
type Recovered string

func (r Recovered) Error() string { return string(r) }

// Most is how many reports of a Queue may wait.
const Most = 16

// Queue passes errors to a handler in their order, in a goroutine of its own, which ends when no
// report waits. It is safe for concurrent use. The zero Queue is ready to use.
type Queue struct {
	// Handle is the handler; nil is [otel.Handle].
	Handle func(error)

	mu      sync.Mutex
	waiting []error
	idle    chan struct{} // closed when no report waits; nil if none does
}

// delivering is the number of queues with a goroutine.
var delivering atomic.Int64

// Delivering returns how many queues of this process are delivering reports. If it is 0, the
// handlers of all added reports have returned.
func Delivering() int64 { return delivering.Load() }

// Add queues a report and returns at once. If Most wait, the last one and this one are discarded:
// the end of an outage and the beginning of the next one cancel each other.
func (q *Queue) Add(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == Most {
		q.waiting = q.waiting[:Most-1]
		return
	}
	q.waiting = append(q.waiting, err)
	if q.idle == nil {
		q.idle = make(chan struct{})
		delivering.Add(1)
		go q.deliver()
	}
}

// Last is how long Flush waits at most: a handler may block forever.
const Last = 100 * time.Millisecond

// Flush waits until the handler has handled all reports, or for [Last]: a program that ends would
// lose them.
func (q *Queue) Flush() {
	q.mu.Lock()
	idle := q.idle
	q.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-time.After(Last):
	}
}

func (q *Queue) deliver() {
	defer delivering.Add(-1)
	handle := q.Handle
	if handle == nil {
		handle = otel.Handle
	}
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 {
			close(q.idle)
			q.idle = nil
			q.mu.Unlock()
			return
		}
		err := q.waiting[0]
		q.waiting = q.waiting[1:]
		q.mu.Unlock()
		handle(err)
	}
}
