package traceid_test

import (
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/traceid"
)

func TestNotBefore(t *testing.T) {
	f := vectors(t)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.UnixMilli(f.KindsNowMS))) // the bubble's clock starts in 2000
		for _, v := range f.Kinds {
			got := traceid.NotBefore(parse(t, v.ID), time.Hour)
			if v.NotBeforeMS == nil {
				if !got.IsZero() {
					t.Errorf("%s: %s, want no bound", v.Name, got)
				}
			} else if !got.Equal(time.UnixMilli(*v.NotBeforeMS)) || got.Location() != time.UTC {
				t.Errorf("%s: %s, want %d ms", v.Name, got, *v.NotBeforeMS)
			}
		}
		if got := traceid.NotBefore(traceid.Min(noon), -time.Hour); !got.Equal(noon) {
			t.Errorf("a negative slack gives %s, want the ID's time", got)
		}
		if got := traceid.NotBefore(trace.TraceID{}, time.Hour); !got.IsZero() {
			t.Errorf("the invalid ID gives %s", got)
		}
	})
}

// The bits of an ID that was given to a record of June 2020 also read as a ULID of 2023, whose
// time is after all of the trace's spans.
func TestNotBeforeOldRecords(t *testing.T) {
	for at := time.Date(2020, 2, 1, 0, 0, 0, 0, time.UTC); at.Year() == 2020; at = at.AddDate(0, 0, 1) {
		id, err := traceid.New(at, 7, 0x86cdcca4ab608495)
		if err != nil {
			t.Fatal(err)
		}
		if got := traceid.NotBefore(id, time.Hour); !got.Equal(at.Add(-time.Hour)) {
			t.Errorf("an ID of %s: %s", at.Format(time.DateOnly), got)
		}
	}
}
