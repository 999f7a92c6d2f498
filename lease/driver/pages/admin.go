package pages

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// List implements [lease.Admin]. It lists the objects, reads every page whose
// data is not in the list, and writes nothing. The pages are not read at one
// moment unless the server lists their data.
func (s *Store) List(ctx context.Context) ([]lease.Block, error) {
	blocks, err := s.list(ctx)
	if err != nil {
		return nil, s.failed(ctx, "list", err)
	}
	return blocks, nil
}

func (s *Store) list(ctx context.Context) ([]lease.Block, error) {
	sh, err := s.readConfig(ctx)
	if errors.Is(err, errNoConfig) && s.known.Load() == nil {
		_, err := s.asked.Resolve(0)
		return nil, err // a page is created after it
	}
	if err != nil {
		return nil, err
	}
	listed, err := s.server.List(ctx)
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, number := range sh.numbers() {
		if listed[pageName(number)].Version != "" {
			numbers = append(numbers, number)
		}
	}
	all, err := s.readAll(ctx, sh, numbers, listed)
	if err != nil {
		return nil, err
	}
	var blocks []lease.Block
	for _, p := range all {
		for _, b := range p.Blocks {
			if _, err := sh.nodes.Index(b.Node); err == nil {
				blocks = append(blocks, lease.Block(p.get(b.Node)))
			}
		}
	}
	return blocks, nil
}

// Raise implements [lease.Admin]. It reads and writes every page, and creates
// those that are missing.
func (s *Store) Raise(ctx context.Context, until time.Time) error {
	if err := driver.CheckRaise(until); err != nil {
		return fmt.Errorf("%s: %w", s.layout.Name, err)
	}
	if err := s.raise(ctx, until); err != nil {
		return s.failed(ctx, "raise", err)
	}
	return nil
}

func (s *Store) raise(ctx context.Context, until time.Time) error {
	sh, err := s.setup(ctx)
	if err != nil {
		return err
	}
	if sh, err = s.configure(ctx, sh); err != nil {
		return err
	}
	numbers := sh.numbers()
	return eachAtOnce(ctx, len(numbers), func(ctx context.Context, i int) error {
		return s.raisePage(ctx, sh, numbers[i], until)
	})
}

func (s *Store) raisePage(ctx context.Context, sh shape, number int, until time.Time) error {
	p, err := s.read(ctx, sh, number)
	for try := 0; err == nil; try++ {
		for i := range p.nodes.Blocks() {
			b := p.get(p.nodes.Block(i).Node)
			if _, err := sh.nodes.Index(b.Node); err == nil {
				p.put(b.Raise(until))
			}
		}
		if p, err = s.write(ctx, sh, p, "", try); p == nil {
			return err
		}
	}
	return err
}

// numbers returns the numbers of the client's pages, in order.
func (sh shape) numbers() []int {
	first, n := sh.pages()
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = first + i
	}
	return numbers
}

// atOnce is how many requests a call makes at once.
const atOnce = 32

// eachAtOnce calls f for 0 to n-1 and returns the first error, after which it
// makes no further calls.
func eachAtOnce(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := 0; i < n && ctx.Err() == nil; i++ {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if err := f(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// Time implements [lease.Admin]. It is one request.
func (s *Store) Time(ctx context.Context) (time.Time, error) {
	o, err := s.server.Read(ctx, configName)
	if err != nil {
		return time.Time{}, s.failed(ctx, "time", err)
	}
	return o.Time, nil
}
