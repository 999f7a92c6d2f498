package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Some things are measured in a process of their own: what it costs to do
// nothing, how much memory there is, code of another build, every instruction.

// children are this program's other jobs, which `-child` names. They write
// their findings to standard output.
var children = map[string]func(ctx context.Context, s settings) error{
	"idle-nothing": func(_ context.Context, s settings) error { return idle(s, nothing) },
	"idle-unused":  func(_ context.Context, s settings) error { return idle(s, unused) },
	"idle-used":    func(_ context.Context, s settings) error { return idle(s, used) },
	"idle-leased":  func(_ context.Context, s settings) error { return idle(s, leased) },
	"seldom":       func(_ context.Context, s settings) error { return idle(s, seldom) },
	"busy":         func(_ context.Context, s settings) error { return idle(s, busy) },
	"memory":       func(context.Context, settings) error { return memory() },
	"portable":     portable,
	"stepped":      stepped,
}

// self is this program again, for another job.
func self(ctx context.Context, job string, s settings, more ...string) (*exec.Cmd, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, exe, append(s.args("-child", job), more...)...), nil
}

// ask runs a child and decodes its answer.
func ask(ctx context.Context, job string, s settings, answer any) error {
	c, err := self(ctx, job, s)
	if err != nil {
		return err
	}
	out, err := output(c)
	if err != nil {
		return fmt.Errorf("%s: %w", job, err)
	}
	return json.Unmarshal(out, answer)
}

// output is Cmd.Output with an error that has the child's own words.
func output(c *exec.Cmd) ([]byte, error) {
	out, err := c.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w\n%s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return out, err
}

func answer(v any) error { return json.NewEncoder(os.Stdout).Encode(v) }

// portable measures the code without assembly and without linkname; it needs
// a build with the tag purego.
func portable(ctx context.Context, s settings) error {
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
		list[i].gen += "-purego"
	}
	m := measure(list, s.rounds, s.turn)
	return errors.Join(m.write(os.Stdout), g.close(ctx))
}

// addPortable builds this program without assembly and adds what it measures.
func addPortable(ctx context.Context, s settings, m samples) error {
	c := exec.CommandContext(ctx, "go", append([]string{"run", "-tags", "purego", "."}, s.args("-child", "portable")...)...)
	out, err := output(c)
	if err != nil {
		return fmt.Errorf("portable build: %w", err)
	}
	for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
		k, got, err := parse(lines.Text())
		if err != nil {
			return fmt.Errorf("portable build: %w", err)
		}
		m.add(k, got)
	}
	return nil
}

// parse reads a line of samples.write.
func parse(text string) (key string, s sample, err error) {
	var wall, cpu float64
	text, ok := strings.CutPrefix(text, "Benchmark")
	if !ok {
		return "", s, fmt.Errorf("no line of a benchmark: %q", text)
	}
	name, rest, _ := strings.Cut(text, " ")
	key = name[:max(strings.LastIndexByte(name, '-'), 0)]
	_, err = fmt.Sscanf(rest, "%d %f ns/op %f cpu-ns/op %f B/op %f allocs/op", &s.calls, &wall, &cpu, &s.bytes, &s.allocs)
	if err != nil {
		return "", s, fmt.Errorf("%q: %w", text, err)
	}
	s.per = 1
	s.wall = time.Duration(wall * float64(s.calls))
	s.cpu = time.Duration(cpu * float64(s.calls))
	return key, s, nil
}
