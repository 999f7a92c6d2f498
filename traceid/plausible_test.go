package traceid_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/traceflake/traceflake/traceid"
)

// The kinds of IDs in testdata/format.json have the bounds that it lists.
func TestNotBefore(t *testing.T) {
	f := vectors(t)
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
		if got := traceid.NotBefore(traceid.Min(noon), -time.Hour); !got.Equal(noon) {
			t.Errorf("a negative slack gives %s, want the ID's time", got)
		}
	})
}
