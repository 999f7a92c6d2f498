package lease

import (
	"context"
	"testing"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

func TestSmoke(t *testing.T) {
	c, _ := randflake.NewCodec(make([]byte, 16))
	k, err := Open(t.Context(), NewMemory(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := k.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	ids := make([]randflake.ID, 1000)
	n, s, err := k.Fill(ids)
	t.Log(n, s, err)
	if err := k.Close(ctx); err != nil {
		t.Fatal(err)
	}
}
func BenchmarkFill(b *testing.B) {
	c, _ := randflake.NewCodec(make([]byte, 16))
	l := randflake.Lease{Nodes: 1 << 17, Start: time.Now().Add(-time.Second), End: time.Now().Add(time.Hour)}
	dst := make([]randflake.ID, 64)
	b.Run("generator", func(b *testing.B) {
		g, _ := randflake.NewGenerator(c, l)
		for b.Loop() {
			g.Fill(dst)
		}
	})
	b.Run("keeper", func(b *testing.B) {
		k, _ := Open(b.Context(), NewMemory(WithNodeRange(NodeRange{Nodes: 1 << 17, BlockSize: 1 << 17})), c, WithTTL(time.Hour))
		k.Ready(b.Context())
		for b.Loop() {
			k.Fill(dst)
		}
		k.Close(b.Context())
	})
}
