package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/traceflake/traceflake/idgen"
)

// An ID serves as a sharding key when the low half modulo the shards falls on
// each equally often, up to chance.

// shardings are how many shards there are.
var shardings = []int{16, 256, 1024}

// bins are those of the histogram of low halves.
const bins = 64

// balance is how some low halves fall.
type balance struct {
	gen       string
	ids       int
	histogram [bins]int // by the high bits
	shards    [][]int   // by the low half modulo each of shardings
}

func newBalance(gen string, g sdktrace.IDGenerator, ids int) balance {
	b := balance{gen: gen, ids: ids}
	for _, n := range shardings {
		b.shards = append(b.shards, make([]int, n))
	}
	ctx := context.Background()
	for range ids {
		id, _ := g.NewIDs(ctx)
		low := binary.BigEndian.Uint64(id[8:])
		b.histogram[low/(math.MaxUint64/bins+1)]++
		for i, n := range shardings {
			b.shards[i][low%uint64(n)]++
		}
	}
	return b
}

func measureBalance(s settings) ([]balance, error) {
	def, err := sdkDefault()
	if err != nil {
		return nil, err
	}
	mine := idgen.New()
	all := []balance{newBalance("traceflake", mine, s.ids), newBalance("default", def, s.ids)}
	if n := mine.Fallbacks(); n > 0 {
		return nil, fmt.Errorf("%d calls were answered by the fallback", n)
	}
	return all, nil
}

// chiSquare returns the statistic of counts that should be equal, and how
// likely chance alone gives as much or more.
func chiSquare(counts []int) (x2, p float64) {
	total := 0
	for _, n := range counts {
		total += n
	}
	expected := float64(total) / float64(len(counts))
	for _, n := range counts {
		x2 += (float64(n) - expected) * (float64(n) - expected) / expected
	}
	return x2, distuv.ChiSquared{K: float64(len(counts) - 1)}.Survival(x2)
}

// deviations are those of counts from their mean, in standard deviations.
func deviations(counts []int) []float64 {
	total := 0
	for _, n := range counts {
		total += n
	}
	share := 1 / float64(len(counts))
	mean, sigma := float64(total)*share, math.Sqrt(float64(total)*share*(1-share))
	d := make([]float64, len(counts))
	for i, n := range counts {
		d[i] = (float64(n) - mean) / sigma
	}
	return d
}

func balanceReport(all []balance) string {
	rows := [][]string{{"generator", "shards", "chi-square", "degrees of freedom", "p", "fullest shard", "emptiest"}}
	for _, b := range all {
		for i, n := range shardings {
			x2, p := chiSquare(b.shards[i])
			least, most := math.MaxInt, 0
			for _, c := range b.shards[i] {
				least, most = min(least, c), max(most, c)
			}
			mean := float64(b.ids) / float64(n)
			rows = append(rows, []string{b.gen, fmt.Sprint(n), fmt.Sprintf("%.1f", x2), fmt.Sprint(n - 1), fmt.Sprintf("%.3f", p),
				fmt.Sprintf("%+.2f %%", 100*(float64(most)/mean-1)), fmt.Sprintf("%+.2f %%", 100*(float64(least)/mean-1))})
		}
	}
	x2, p := chiSquare(all[0].histogram[:])
	return fmt.Sprintf(`%d trace IDs of each generator, the low half modulo the number of shards. p is how often chance alone is less even
than this; very small means uneven, very near to 1 more even than chance. The histogram of %d equal ranges of
traceflake's low halves has chi-square %.1f, p %.3f.

%s
![Histogram of low halves](plots/low-halves.svg)
![Deviation of shards](plots/shards.svg)
`, all[0].ids, bins, x2, p, markdown(rows))
}
