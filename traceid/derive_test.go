package traceid_test

import (
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/vectors"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// Go and the ports derive the same IDs.
func TestDerive(t *testing.T) {
	for _, v := range vectors.Read[struct {
		Derived []struct {
			Name, Secret, Key, Trace, Span, Wrong string
			UnixMS                                int64 `json:"unix_ms"`
		}
	}](t).Derived {
		secret, err := hex.DecodeString(v.Secret)
		if err != nil {
			t.Fatal(err)
		}
		codec, err := randflake.NewCodec(secret)
		if err != nil {
			t.Fatal(err)
		}
		at := time.UnixMilli(v.UnixMS).Add(999_999)
		id, err1 := traceid.DeriveTrace(codec, at, v.Key)
		span, err2 := traceid.DeriveSpan(codec, at, v.Key)
		if v.Wrong != "" {
			want := traceid.ErrOutOfRange
			if v.Wrong == "key" {
				want = traceid.ErrNoKey
			}
			if !errors.Is(err1, want) || !errors.Is(err2, want) {
				t.Errorf("%s: %v and %v, want %v", v.Name, err1, err2, want)
			}
			continue
		}
		if err1 != nil || err2 != nil || id.String() != v.Trace || span.String() != v.Span {
			t.Errorf("%s: %s, %v and %s, %v; want %s and %s", v.Name, id, err1, span, err2, v.Trace,
				v.Span)
		}
	}
}
