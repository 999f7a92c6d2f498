package main

import (
	"io"
	"runtime"
	"sync"
)

// inParallel makes pieces of output on all processors and writes them in the order in which they
// were started.
type inParallel struct {
	pieces chan chan *piece
	free   chan struct{} // a token for each piece in progress
	done   sync.WaitGroup

	mu  sync.Mutex
	err error
}

// piece is some output, and some text for standard error.
type piece struct {
	out, errOut []byte
	table       table // for the function that makes the piece
}

// pieces recycles written pieces.
var pieces = sync.Pool{New: func() any { return new(piece) }}

func newPiece() *piece {
	p := pieces.Get().(*piece)
	p.out, p.errOut = p.out[:0], p.errOut[:0]
	p.table.text, p.table.ends = p.table.text[:0], p.table.ends[:0]
	return p
}

func newInParallel(out, errOut io.Writer) *inParallel {
	n := runtime.GOMAXPROCS(0)
	p := &inParallel{pieces: make(chan chan *piece, 2*n), free: make(chan struct{}, n)}
	p.done.Go(func() {
		for made := range p.pieces {
			this := <-made
			if p.failed() != nil {
				continue
			}
			if len(this.errOut) > 0 {
				_, _ = errOut.Write(this.errOut)
			}
			if _, err := out.Write(this.out); err != nil {
				p.mu.Lock()
				p.err = err
				p.mu.Unlock()
			}
			pieces.Put(this)
		}
	})
	return p
}

// start calls f in a new goroutine as soon as a processor is free. It returns the error of an
// earlier write.
func (p *inParallel) start(f func() *piece) error {
	p.free <- struct{}{}
	made := make(chan *piece, 1)
	p.pieces <- made
	go func() {
		made <- f()
		<-p.free
	}()
	return p.failed()
}

// wait waits until everything is written.
func (p *inParallel) wait() error {
	close(p.pieces)
	p.done.Wait()
	return p.failed()
}

func (p *inParallel) failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}
