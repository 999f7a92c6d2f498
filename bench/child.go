package main

import (
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
	"avx2":         variant("avx2").measure,
	"purego":       variant("purego").measure,
	"nolinkname":   variant("nolinkname").measure,
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
