package traceid_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/traceflake/traceflake/internal/vectors"
	"github.com/traceflake/traceflake/traceid"
)

// The kinds of IDs in testdata/format.json have the bounds that it lists.
func TestNotBefore(t *testing.T) {
	f := vectors.Read[format](t)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.UnixMilli(f.KindsNowMS))) // the bubble's clock starts in 2000
		for _, v := range f.Kinds {
			got, want := traceid.NotBefore(parse(t, v.ID), time.Hour), time.Time{} // no bound
			if v.NotBeforeMS != nil {
				want = time.UnixMilli(*v.NotBeforeMS).UTC()
			}
			if got != want {
				t.Errorf("%s: %s, want %s", v.Name, got, want)
			}
		}
		for _, v := range f.Bound {
			if v.NowMS != f.KindsNowMS {
				continue // the bubble's clock shows no time before 2000
			}
			slack := time.Duration(v.SlackMS) * time.Millisecond
			if got := traceid.NotBefore(parse(t, v.ID), slack).UnixMilli(); got != *v.NotBeforeMS {
				t.Errorf("%s: %d, want %d", v.Name, got, *v.NotBeforeMS)
			}
		}
	})
}
