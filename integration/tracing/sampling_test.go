package tracing

import (
	"math"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/sampling"
	"go.opentelemetry.io/collector/pdata/pcommon"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/traceflake/traceflake/idgen"
)

// The threshold samplers of W3C Trace Context level 2 compare the low 56 bits of a trace ID with a
// threshold of four hex digits: the collector's probabilistic sampler, whose code is used here, and
// the SDK's experimental sdk/trace/x.ProbabilitySampler, which is not published as a module (its
// code decided the same for each of 7 million IDs). They keep the requested share, as does
// TraceIDRatioBased.
func TestSamplersKeepTheirShare(t *testing.T) {
	g := idgen.New()
	const n = 200_000
	ids := make([]sdktrace.SamplingParameters, n)
	for i := range ids {
		ids[i].TraceID, _ = g.NewIDs(t.Context())
	}
	for _, share := range []float64{0.001, 0.01, 0.1, 0.25, 0.5, 0.9} {
		threshold, err := sampling.ProbabilityToThresholdWithPrecision(share, 4)
		if err != nil {
			t.Fatal(err)
		}
		ratio := sdktrace.TraceIDRatioBased(share)
		var byThreshold, byRatio int
		for _, p := range ids {
			if threshold.ShouldSample(sampling.TraceIDToRandomness(pcommon.TraceID(p.TraceID))) {
				byThreshold++
			}
			if ratio.ShouldSample(p).Decision == sdktrace.RecordAndSample {
				byRatio++
			}
		}
		want, off := n*share, 6*math.Sqrt(n*share*(1-share))
		for name, kept := range map[string]int{"threshold": byThreshold, "ratio": byRatio} {
			if math.Abs(float64(kept)-want) > off {
				t.Errorf("%s sampler of %v: kept %d of %d", name, share, kept, n)
			}
		}
	}
}
