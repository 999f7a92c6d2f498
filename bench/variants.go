package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/cpu"
)

// variant is a build or a CPU with something left out; in subjects' names it
// comes after a hyphen. Each is measured in a process of its own.
type variant string

// variants are all of them.
var variants = []variant{"avx2", "purego", "nolinkname"}

// of is the name of a generator in this variant.
func (v variant) of(gen string) string { return gen + "-" + string(v) }

// start is how the variant begins: AVX-512 is switched off in the environment,
// the others are tags of the build.
func (v variant) start(ctx context.Context, s settings) (*exec.Cmd, error) {
	if v != "avx2" {
		return exec.CommandContext(ctx, "go", append([]string{"run", "-tags", string(v), "."}, s.args("-child", string(v))...)...), nil
	}
	c, err := self(ctx, string(v), s)
	if err != nil {
		return nil, err
	}
	c.Env = append(os.Environ(), "GODEBUG=cpu.avx512f=off")
	return c, nil
}

// measure is the variant's process: the parts, and the IDs made of them.
func (v variant) measure(ctx context.Context, s settings) error {
	if v == "avx2" && cpu.X86.HasAVX512F {
		return errors.New("AVX-512 is not switched off: GODEBUG=cpu.avx512f=off does it")
	}
	list, err := parts()
	if err != nil {
		return err
	}
	g, err := newGenerators(ctx)
	if err != nil {
		return err
	}
	list = append(list,
		newSpanID("NewSpanID", "default", 1, g.sdk), newSpanID("NewSpanID", "traceflake", 1, g.private),
		newIDs("NewIDs", "default", 1, g.sdk), newIDs("NewIDs", "traceflake", 1, g.private))
	for i := range list {
		list[i].gen = v.of(list[i].gen)
	}
	m := measure(list, s.rounds, s.turn)
	return errors.Join(m.write(os.Stdout), g.close(ctx))
}

// add starts the variant's process and adds what it measures.
func (v variant) add(ctx context.Context, s settings, m samples) error {
	c, err := v.start(ctx, s)
	if err != nil {
		return err
	}
	out, err := output(c)
	if err != nil {
		return fmt.Errorf("variant %s: %w", v, err)
	}
	for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
		k, got, err := parse(lines.Text())
		if err != nil {
			return fmt.Errorf("variant %s: %w", v, err)
		}
		m.add(k, got)
	}
	return nil
}

// benchstat is the variant's table of generators.
func (v variant) benchstat() statTable {
	return statTable{"The same, variant " + string(v), ".name:(NewIDs OR NewSpanID) /gen:/-" + string(v) + "/", ".name", "/gen@(" + v.of("default") + " " + v.of("traceflake") + ")"}
}

// fastest names the code that sparx64 chooses here.
func fastest() string {
	if runtime.GOARCH == "amd64" && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VBMI2 {
		return "AVX-512"
	}
	return withoutAVX512()
}

// withoutAVX512 names the code that it chooses in the variant avx2.
func withoutAVX512() string {
	switch {
	case runtime.GOARCH == "arm64":
		return "NEON"
	case runtime.GOARCH == "amd64" && cpu.X86.HasAVX2:
		return "AVX2"
	}
	return "portable"
}

// variantTable is the code as it is and its variants, side by side.
func variantTable(m samples) string {
	rows := [][]string{{"", "cipher", "one draw", "EncryptUint64s, per block", "Fill, per ID", "Next", "NewIDs", "NewSpanID"}}
	for _, r := range []struct {
		what, cipher string
		of           func(gen string) string
	}{
		{"as it is", fastest(), func(gen string) string { return gen }},
		{"`GODEBUG=cpu.avx512f=off`", withoutAVX512(), variant("avx2").of},
		{"`-tags purego`: no assembly", "portable", variant("purego").of},
		{"`-tags nolinkname`: no linkname", fastest(), variant("nolinkname").of},
	} {
		row := []string{r.what, r.cipher}
		for _, c := range [][2]string{{"Draw", "rand"}, {"EncryptUint64s", "sparx64"}, {"Fill", "randflake"}, {"Next", "randflake"}} {
			row = append(row, fmt.Sprintf("%.1f ns", m.median(key(c[0], r.of(c[1]), 1), sample.wallNs)))
		}
		for _, name := range []string{"NewIDs", "NewSpanID"} {
			of, to := key(name, r.of("traceflake"), 1), key(name, r.of("default"), 1)
			row = append(row, fmt.Sprintf("%.1f ns, %.2f", m.median(of, sample.wallNs), m.ratio(of, to, sample.wallNs)))
		}
		rows = append(rows, row)
	}
	return markdown(rows)
}
