// Package child runs a function in a child process of the same program and returns its result.
package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// variable is the environment variable with the job of a child process.
const variable = "TRACEFLAKE_BENCH_CHILD"

// Jobs maps names to functions. Their results are passed as JSON.
type Jobs map[string]func(args []string) (any, error)

// Main must be called first in a program or a TestMain. In a child process it does the job and
// does not return.
func Main(jobs Jobs) {
	name := os.Getenv(variable)
	if name == "" {
		return
	}
	if err := do(jobs, name); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func do(jobs Jobs, name string) error {
	job, ok := jobs[name]
	if !ok {
		return fmt.Errorf("no job %q: does main pass it to child.Main?", name)
	}
	answer, err := job(os.Args[1:])
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(answer)
}

// Ask does a job in a child process.
func Ask(ctx context.Context, answer any, job string, args ...string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, exe, args...)
	c.Env = append(os.Environ(), variable+"="+job)
	out, err := Output(c)
	if err != nil {
		return fmt.Errorf("%s: %w", job, err)
	}
	return json.Unmarshal(out, answer)
}

// Output is Cmd.Output with an error that includes the process's standard error.
func Output(c *exec.Cmd) ([]byte, error) {
	out, err := c.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w\n%s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return out, err
}
