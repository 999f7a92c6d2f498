package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// slowest is the longest time that a test may take.
	slowest = time.Minute
	// together is how much test time goes into one run.
	together = time.Second
)

// trial says how to try a package's mutants.
type trial struct {
	workers int
	slow    time.Duration // tests that take longer are left out
	grown   bool
	match   string
	listed  string // docs/testing.md
}

// test is a top-level test, what it reaches, and how long it takes.
type test struct {
	Name    string
	Took    time.Duration
	Failed  bool
	Reached []byte // one byte for each mutant
	binary  int
}

// result is a line of the file of results.
type result struct {
	Name         string
	Source, Hash string // of the package, and of the test binaries
	Killed       bool
	By           string
}

func (t target) try(ctx context.Context, root string, how trial) (score, error) {
	start := time.Now()
	var s score
	b, err := t.build(ctx, root)
	if err != nil {
		return s, err
	}
	tests, err := b.baseline(ctx)
	if err != nil {
		return s, err
	}
	tests = slices.DeleteFunc(tests, func(t test) bool { return t.Took > how.slow })
	hash := how.slow.String() + " "
	for _, bin := range b.binaries {
		hash += bin.hash
	}
	known, err := b.known()
	if err != nil {
		return s, err
	}
	results, err := os.OpenFile(b.resultsPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return s, err
	}
	defer results.Close()

	var mu sync.Mutex
	var survivors []int
	var writeErr error
	note := func(i int, r result, fresh bool) {
		mu.Lock()
		defer mu.Unlock()
		if fresh {
			line, err := json.Marshal(r)
			if err == nil {
				_, err = results.Write(append(line, '\n'))
			}
			writeErr = errors.Join(writeErr, err)
		}
		if r.Killed {
			s.killed++
			return
		}
		s.survived++
		survivors = append(survivors, i)
	}
	jobs := make(chan int)
	var wg sync.WaitGroup
	for range how.workers {
		wg.Go(func() {
			for i := range jobs {
				by, killed := b.kill(ctx, tests, i, how.match != "")
				if ctx.Err() == nil {
					note(i, result{b.mutants[i].name, b.source, hash, killed, by}, true)
				}
			}
		})
	}
	for i, m := range b.mutants {
		if !strings.Contains(m.name, how.match) || ctx.Err() != nil {
			continue
		}
		r, ok := known[m.name]
		if ok && how.match == "" && (r.Hash == hash || how.grown && r.Killed && r.Source == b.source) {
			note(i, r, false)
			continue
		}
		jobs <- i
	}
	close(jobs)
	wg.Wait()
	slices.Sort(survivors)
	for _, i := range survivors {
		m := b.mutants[i]
		if strings.Contains(how.listed, "- "+m.name+"\n") {
			s.listed++
			continue
		}
		s.unlisted++
		fmt.Printf("line %d: %s%s\n", m.line, m.name, map[bool]string{true: " [reached by no test]"}[!reached(tests, i)])
	}
	s.took = time.Since(start)
	fmt.Printf("%-34s %s\n", t.dir, s)
	return s, writeErr
}

func reached(tests []test, mutant int) bool {
	return slices.ContainsFunc(tests, func(t test) bool { return t.Reached[mutant] != 0 })
}

func (b *built) resultsPath() string { return filepath.Join(b.cache, "results.jsonl") }

// known reads the results of earlier runs.
func (b *built) known() (map[string]result, error) {
	data, err := os.ReadFile(b.resultsPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	known := map[string]result{}
	for line := range bytes.Lines(data) {
		var r result
		if err := json.Unmarshal(line, &r); err != nil {
			continue // a run was interrupted while it wrote this line
		}
		known[r.Name] = r
	}
	return known, nil
}

// baseline runs each test alone, without a mutant, once for each binary. Tests that fail or are
// too slow are left out and reported.
func (b *built) baseline(ctx context.Context) ([]test, error) {
	var all []test
	for n, bin := range b.binaries {
		path := bin.path + "." + bin.hash + ".json"
		var tests []test
		if data, err := os.ReadFile(path); err == nil {
			if err := json.Unmarshal(data, &tests); err != nil {
				return nil, fmt.Errorf("%s: %w; remove it", path, err)
			}
		} else {
			if tests, err = b.record(ctx, bin); err != nil {
				return nil, err
			}
			data, err := json.Marshal(tests)
			if err != nil {
				return nil, err
			}
			old, _ := filepath.Glob(bin.path + ".*.json")
			for _, o := range old {
				if err := os.Remove(o); err != nil {
					return nil, err
				}
			}
			if err := os.WriteFile(path, data, 0o666); err != nil {
				return nil, err
			}
		}
		for _, t := range tests {
			if t.Failed {
				fmt.Printf("%s: %s fails or is too slow without a mutant: left out\n", bin.path, t.Name)
				continue
			}
			t.binary = n
			all = append(all, t)
		}
	}
	slices.SortStableFunc(all, func(a, b test) int {
		return cmp.Or(cmp.Compare(a.binary, b.binary), cmp.Compare(a.Took, b.Took))
	})
	return all, nil
}

// record runs each test alone.
func (b *built) record(ctx context.Context, bin binary) ([]test, error) {
	cmd := exec.CommandContext(ctx, bin.path, "-test.list", "^(Test|Example|Fuzz)")
	cmd.Dir = bin.dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", bin.path, err)
	}
	reached := bin.path + ".reached"
	defer os.Remove(reached)
	var tests []test
	for name := range strings.FieldsSeq(string(out)) {
		if !regexp.MustCompile(`^(Test|Example|Fuzz)\w*$`).MatchString(name) {
			continue
		}
		if err := os.WriteFile(reached, make([]byte, max(len(b.mutants), 1)), 0o666); err != nil {
			return nil, err
		}
		start := time.Now()
		failed, _, _ := bin.run(ctx, []string{name}, slowest, "MUTANTS_REACHED="+reached)
		t := test{Name: name, Took: time.Since(start), Failed: failed}
		if t.Reached, err = os.ReadFile(reached); err != nil {
			return nil, err
		}
		tests = append(tests, t)
	}
	return tests, ctx.Err()
}

// kill runs the tests that reach a mutant, the fastest first, and returns the run that failed. It
// repeats a failed run, because a test may fail by chance.
func (b *built) kill(ctx context.Context, tests []test, mutant int, show bool) (by string, killed bool) {
	for n, bin := range b.binaries {
		var names []string
		var took time.Duration
		run := func() bool {
			failed, out := false, ""
			for range 2 {
				var endless bool
				failed, endless, out = bin.run(ctx, names, 2*time.Second+10*took, "MUTANT="+strconv.Itoa(mutant))
				if !failed || endless {
					break
				}
			}
			if show {
				fmt.Printf("%s\n%s: failed %v\n%s\n", b.mutants[mutant].name, strings.Join(names, " "), failed, out)
			}
			return failed
		}
		for _, t := range tests {
			if t.binary != n || t.Reached[mutant] == 0 {
				continue
			}
			if names != nil && t.Took > together/4 { // let the fast ones try first
				if run() {
					return strings.Join(names, " "), true
				}
				names, took = nil, 0
			}
			names, took = append(names, t.Name), took+t.Took
			if took < together {
				continue
			}
			if run() {
				return strings.Join(names, " "), true
			}
			names, took = nil, 0
		}
		if names != nil && run() {
			return strings.Join(names, " "), true
		}
	}
	return "", false
}

// run runs some tests of a binary. It reports whether one fails or hangs, and whether they used
// far more processor time than they need.
func (bin binary) run(ctx context.Context, names []string, limit time.Duration, env string) (failed, endless bool, out string) {
	wall := 10*time.Second + 2*limit // the machine may be busy
	ctx, cancel := context.WithTimeout(ctx, wall+10*time.Second)
	defer cancel()
	args := append([]string{"-c", `ulimit -t "$1"; shift; exec "$@"`, "sh", strconv.Itoa(int(limit.Seconds())), bin.path,
		"-test.run", "^(" + strings.Join(names, "|") + ")$", "-test.failfast", "-test.timeout", wall.String()}, bin.flags...)
	cmd := exec.CommandContext(ctx, "sh", args...)
	cmd.Dir = bin.dir
	cmd.Env = append(os.Environ(), env)
	cmd.WaitDelay = time.Second
	all, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		return true, false, err.Error()
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return err != nil, used > limit-time.Second/2, string(all)
}
