package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// change is a mutant that no rule generates: a mistake that a programmer could make.
type change struct {
	name  string
	file  string
	old   string // occurs once in the file
	with  string
	tests []string // packages, by directory
}

var changes = []change{
	{"every process has the zero secret", "idgen/private.go",
		`_, _ = rand.Read(secret[:])`, `_ = rand.Reader`, []string{"idgen"}},
	{"the Keeper ends with the context of Start", "lease/keeper.go",
		`context.WithCancel(context.WithoutCancel(ctx))`, `context.WithCancel(ctx)`, []string{"lease", "setup"}},
	{"a file's own secret overrides the fleet's", "setup/config.go",
		`if keyring != nil {
		codec`, `if keyring != nil && codec == nil {
		codec`, []string{"setup"}},
	{"used seconds are returned", "lease/run.go",
		`unused, first := t.end(ending{})`, `unused := t.clock.Now()
	_, first := t.end(ending{})`, []string{"lease"}},
	{"an end that the store moved back goes unnoticed", "lease/answer.go",
		` || stored.End.Before(mine.End):`, `:`, []string{"lease"}},
	{"an end that a renewal moved back is accepted", "lease/run.go",
		` || g.End.Before(t.grant.End) {`, ` {`, []string{"lease"}},
	{"two goroutines fill one stock", "idgen/shards.go",
		`s.slots[p].stock = nil`, `_ = s.slots[p].stock`, []string{"idgen"}},
	{"the sequence of backfilled IDs overflows into the time", "idgen/backfill.go",
		`g.old.Add(1) & maxSequence`, `g.old.Add(1)`, []string{"idgen"}},
	{"a backfilled ID has no low half while the source refuses", "idgen/backfill.go",
		`low = randomID()`, `_ = randomID`, []string{"idgen"}},
	{"a file identifies a range by its first node only", "lease/boltstore/file.go",
		`append(keyOf(s.nodes.First), keyOf(s.nodes.Nodes)...)`, `keyOf(s.nodes.First)`,
		[]string{"lease/boltstore"}},
	{"the word that encrypts to zero overwrites another", "randflake/generator.go",
		`g.next.CompareAndSwap(old, g.zero+1)`, `g.next.Store(g.zero + 1)`, []string{"randflake"}},
	{"a grant that arrives during Close makes IDs", "lease/keeper.go",
		`if errors.Is(k.held.Load().err, ErrClosed) {`, `if false {`, []string{"lease"}},
	{"steps back of one to two seconds go unnoticed", "lease/term.go",
		`case gap.Abs() > maxClockGap:`, `case gap > maxClockGap, gap < -2*maxClockGap:`, []string{"lease"}},
	{"a suspension during Acquire goes unnoticed", "lease/run.go",
		`k.newTerm(g, before, won.life)`, `k.newTerm(g, read(k.cfg.clock), won.life)`, []string{"lease"}},
	{"a stepped clock renews", "lease/run.go",
		`case !ok:`, `case !ok && false:`, []string{"lease"}},
	{"a refused renewal counts as a success", "lease/run.go",
		`k.meters.request(ctx, "renew", err)`, `k.meters.request(ctx, "renew", nil)`, []string{"lease"}},
	{"a renewal that was not written counts as one", "lease/run.go",
		`	case unwritten:
		k.retry(ctx, t, err)`, `	case unwritten:
		k.prove(t)`, []string{"lease"}},
	{"a file is not synced", "lease/boltstore/file.go",
		`ReadOnly:     how == read,`, `ReadOnly:     how == read, NoSync: true,`, []string{"lease/boltstore"}},
}

// tryNamed tries the changes in the table, one at a time.
func tryNamed(ctx context.Context, root, match string) error {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	survived := 0
	for _, c := range changes {
		if !strings.Contains(c.name, match) {
			continue
		}
		by, err := c.try(ctx, root, dir)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", c.name, err)
		case by == "":
			survived++
			by = "SURVIVED"
		}
		fmt.Printf("%-58s %s\n", c.name, by)
	}
	if survived > 0 {
		return fmt.Errorf("%d named mutants survived", survived)
	}
	return nil
}

// try applies the change and returns the first test that fails.
func (c change) try(ctx context.Context, root, dir string) (by string, err error) {
	path := filepath.Join(root, c.file)
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(source), c.old); n != 1 {
		return "", fmt.Errorf("%s contains %[3]q %[2]d times, want once: correct the table", c.file, n, c.old)
	}
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	text := strings.Replace(string(source), c.old, c.with, 1)
	if err := os.WriteFile(changed, []byte(text), 0o666); err != nil {
		return "", err
	}
	data, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(overlay, data, 0o666); err != nil {
		return "", err
	}
	for _, tests := range c.tests {
		bin := binary{path: filepath.Join(dir, "tests"), dir: filepath.Join(root, tests)}
		build := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", overlay, "-o", bin.path, "./"+tests)
		build.Dir = root
		if out, err := build.CombinedOutput(); err != nil {
			return "", fmt.Errorf("the change does not build: %w\n%s", err, out)
		}
		failed, _, out := bin.run(ctx, []string{"(Test|Example|Fuzz).*"}, 5*slowest, "MUTANT=")
		if err := ctx.Err(); err != nil {
			return "", err
		}
		if failed {
			_, name, _ := strings.Cut(out, "--- FAIL: ")
			name, _, _ = strings.Cut(name, " ")
			return "killed by " + tests + " " + name, nil
		}
	}
	return "", nil
}
