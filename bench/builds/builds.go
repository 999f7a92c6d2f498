// Package builds answers: what do the assembly and the linkname of procPin gain?
//
// The cipher's assembly makes IDs, with AVX-512 if the CPU has it, and a function of the runtime
// that Go does not export finds each processor's batch. Each of these can be left out, by GODEBUG
// or by a build tag. Each such build is measured in a separate process.
package builds

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/cpu"

	"github.com/traceflake/traceflake/bench/internal/child"
	"github.com/traceflake/traceflake/bench/internal/text"
)

// Build is a way to build and start the measured program.
type Build struct {
	What, Tags, GODEBUG string
}

// Builds lists all builds; the first one leaves nothing out.
var Builds = []Build{
	{What: "nothing left out"},
	{What: "without AVX-512: `GODEBUG=cpu.avx512f=off`", GODEBUG: "cpu.avx512f=off"},
	{What: "without assembly: `-tags purego`", Tags: "purego"},
	{What: "without linkname: `-tags nolinkname`", Tags: "nolinkname"},
}

// Figures holds nanoseconds: of one draw, one block, one ID.
type Figures struct {
	Cipher                                     string
	Draw, Block, Fill, Next, NewIDs, NewSpanID Number
	// Ratios to the SDK's default generator.
	IDsRatio, SpanRatio Number
}

// Number is NaN if too few turns had their CPUs; NaN is null in JSON.
type Number float64

// MarshalJSON implements [json.Marshaler].
func (n Number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON implements [json.Unmarshaler].
func (n *Number) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*n = Number(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float64)(n))
}

// program is the measured program.
const program = "github.com/traceflake/traceflake/bench/builds/one"

// Measure measures every build.
func Measure(ctx context.Context, progress io.Writer, rounds int) ([]Figures, error) {
	all := make([]Figures, len(Builds))
	for i, b := range Builds {
		fmt.Fprintf(progress, "builds %d/%d: %s\n", i+1, len(Builds), b.What)
		c := exec.CommandContext(ctx, "go", "run", "-tags", b.Tags, program, fmt.Sprint(rounds))
		c.Env = os.Environ()
		if b.GODEBUG != "" {
			c.Env = append(c.Env, "GODEBUG="+b.GODEBUG)
		}
		out, err := child.Output(c)
		if err != nil {
			return nil, fmt.Errorf("build %s: %w", b.What, err)
		}
		if err := json.Unmarshal(out, &all[i]); err != nil {
			return nil, fmt.Errorf("build %s: %w", b.What, err)
		}
	}
	return all, nil
}

// HasAVX512 reports whether the cipher uses AVX-512 here.
func HasAVX512() bool {
	return runtime.GOARCH == "amd64" && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VBMI2
}

// Cipher names the code that the cipher uses in a build with assembly.
func Cipher() string {
	switch {
	case HasAVX512():
		return "AVX-512"
	case runtime.GOARCH == "arm64":
		return "NEON"
	case runtime.GOARCH == "amd64" && cpu.X86.HasAVX2:
		return "AVX2"
	}
	return "portable"
}

// Report returns the section of the results.
func Report(all []Figures) string {
	rows := [][]string{{"", "cipher", "one draw", "EncryptUint64s, a block", "Fill, an ID", "Next", "NewIDs", "NewSpanID"}}
	for i, f := range all {
		row := []string{Builds[i].What, f.Cipher}
		for _, ns := range []Number{f.Draw, f.Block, f.Fill, f.Next} {
			row = append(row, text.Ns(float64(ns)))
		}
		rows = append(rows, append(row,
			withRatio(f.NewIDs, f.IDsRatio), withRatio(f.NewSpanID, f.SpanRatio)))
	}
	return `One goroutine, flat out, medians; each row is a separate process. One draw is math/rand/v2.Uint64. EncryptUint64s
and Fill work on 256 at once; Next encrypts one block, with portable code in every build. NewIDs and NewSpanID also have
their ratio to the SDK's default generator.

` + text.Table(rows)
}

func withRatio(ns, ratio Number) string {
	if math.IsNaN(float64(ratio)) {
		return text.Ns(float64(ns))
	}
	return fmt.Sprintf("%s, %.2f", text.Ns(float64(ns)), ratio)
}
