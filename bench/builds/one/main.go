// Command one measures its own build.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/traceflake/traceflake/bench/builds"
	"github.com/traceflake/traceflake/bench/internal/gens"
	"github.com/traceflake/traceflake/bench/internal/turns"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/sparx64"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "one:", err)
		os.Exit(1)
	}
}

// batch is how many IDs or blocks are made at once.
const batch = 256

const turn = 2 * time.Millisecond

// warmUp is longer than a new generator reads the clock for each ID, which it does until it knows
// the counter's rate. It would not learn it in turns: the garbage collection before each one may
// empty a sync.Pool.
const warmUp = 40 * time.Millisecond

func run() error {
	if len(os.Args) != 2 {
		return errors.New("usage: one ROUNDS")
	}
	rounds, err := strconv.Atoi(os.Args[1])
	if err != nil || rounds < 1 {
		return fmt.Errorf("%q is not a number of rounds", os.Args[1])
	}
	ctx := context.Background()
	set, err := gens.New(ctx)
	if err != nil {
		return err
	}
	list, err := parts()
	if err != nil {
		return err
	}
	p := turns.FlatOut(list, 1, rounds, turn)
	names := []string{gens.Default, gens.Traceflake}
	for begin := time.Now(); time.Since(begin) < warmUp; {
		set.Of(gens.Traceflake).NewIDs(context.Background())
	}
	ids := turns.FlatOut(set.Subjects(gens.NewIDs, names...), 1, rounds, turn)
	spans := turns.FlatOut(set.Subjects(gens.NewSpanID, names...), 1, rounds, turn)
	ns := func(r *turns.Result, name string) builds.Number { return builds.Number(r.Ns(name)) }
	ratio := func(r *turns.Result) builds.Number {
		return builds.Number(r.Ratio(gens.Traceflake, gens.Default).Mid)
	}
	f := builds.Figures{
		Cipher: cipherName(),
		Draw:   ns(p, "draw"), Block: ns(p, "block") / batch, Fill: ns(p, "fill") / batch, Next: ns(p, "next"),
		NewIDs: ns(ids, gens.Traceflake), IDsRatio: ratio(ids),
		NewSpanID: ns(spans, gens.Traceflake), SpanRatio: ratio(spans),
	}
	if err := set.Close(ctx); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(f)
}

// parts returns the parts of a generator, and one draw of a random number.
func parts() ([]turns.Subject, error) {
	var key [sparx64.KeySize]byte
	_, _ = rand.Read(key[:]) // never fails
	cipher, err := sparx64.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	codec, err := gens.Codec()
	if err != nil {
		return nil, err
	}
	all := randflake.Lease{Nodes: randflake.MaxNode + 1, Start: time.Unix(randflake.Epoch, 0), End: time.Unix(randflake.EndOfLife, 0)}
	g, err := randflake.NewGenerator(codec, all)
	if err != nil {
		return nil, err
	}
	blocks := make([]uint64, batch)
	ids := make([]randflake.ID, batch)
	return []turns.Subject{
		{Name: "draw", Run: func(n int) {
			var x uint64
			for range n {
				x ^= mathrand.Uint64()
			}
			runtime.KeepAlive(x) // otherwise the compiler might remove the loop
		}},
		{Name: "block", Run: func(n int) {
			for range n {
				cipher.EncryptUint64s(blocks, blocks)
			}
		}},
		{Name: "fill", Run: func(n int) {
			for range n {
				if _, _, err := g.Fill(ids); err != nil {
					panic(err) // the lease covers all nodes and seconds
				}
			}
		}},
		{Name: "next", Run: func(n int) {
			for range n {
				if _, err := g.Next(); err != nil {
					panic(err) // the lease covers all nodes and seconds
				}
			}
		}},
	}, nil
}
