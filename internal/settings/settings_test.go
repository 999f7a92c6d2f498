package settings

import (
	"errors"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
)

// The bounds of each value are valid.
func TestBounds(t *testing.T) {
	for want, texts := range map[Settings][2]string{
		{Store: "file:x", TTL: 2 * time.Second, Strict: true}: {"2s", "true"},
		{Store: "file:x", TTL: lease.MaxTTL}:                  {"1d", "0"},
	} {
		t.Setenv(Store, "file:x")
		t.Setenv(SecretFile, "")
		t.Setenv(TTL, texts[0])
		t.Setenv(Strict, texts[1])
		if got, err := Read(); got != want || errors.Join(err, got.Check()) != nil {
			t.Errorf("%q: got %+v, %v, %v", texts, got, err, got.Check())
		}
	}
}
