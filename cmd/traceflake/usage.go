package main

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/traceflake/traceflake/internal/vmclock"
)

// group returns a command that only has subcommands: without arguments it
// prints its help, and for a mistyped one it suggests a command.
func group(cmd *cobra.Command, subcommands ...*cobra.Command) *cobra.Command {
	const distance = 2
	cmd.SuggestionsMinimumDistance = distance
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		text := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
		if names := cmd.SuggestionsFor(args[0]); len(names) > 0 {
			return fmt.Errorf("%s; did you mean %s?", text, strings.Join(names, " or "))
		}
		return fmt.Errorf("%s; %s --help lists them", text, cmd.CommandPath())
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(subcommands...)
	return cmd
}

// helpCommand replaces cobra's, which succeeds for a command that does not exist.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Show the help of a command",
		Example: "  traceflake help inspect",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err == nil && len(rest) > 0 {
				err = fmt.Errorf("unknown command %q for %q", rest[0], cmd.CommandPath())
			}
			if err != nil {
				return err
			}
			return cmd.Help()
		},
	}
}

// addCompletion adds cobra's command, which takes its output from root. Unlike cobra it refuses
// unknown shells.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd("completion") // it is added only if it is called
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			group(cmd)
		}
	}
}

// explainArgs makes errors about the number of arguments show what a command takes.
func explainArgs(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		explainArgs(sub)
	}
	check := cmd.Args
	if check == nil || cmd.HasSubCommands() {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if check(cmd, args) == nil {
			return nil
		}
		return fmt.Errorf("%q does not fit; usage: %s %s", args, cmd.Parent().CommandPath(), cmd.Use)
	}
}

// explainFlag makes an error about a flag say what to write.
func explainFlag(cmd *cobra.Command, err error) error {
	var number *strconv.NumError
	var invalid *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &invalid) && errors.As(err, &number):
		return fmt.Errorf("--%s: %q is not a whole number", invalid.GetFlag().Name, invalid.GetValue())
	case errors.As(err, &invalid):
		return fmt.Errorf("--%s: %w", invalid.GetFlag().Name, invalid.Unwrap())
	case errors.As(err, &unknown):
		if short := unknown.GetSpecifiedShortnames(); short != "" && '0' <= short[0] && short[0] <= '9' {
			return fmt.Errorf("-%s is not a flag; for a time in the past write now-%s", short, short)
		}
	}
	return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
}

// duration is a flag like pflag's, which also reads days.
type duration struct{ *time.Duration }

func (d duration) Set(s string) (err error) {
	*d.Duration, err = parseDuration(s)
	return err
}

func (d duration) Type() string { return "duration" }

// durationFlag adds a flag for a duration.
func durationFlag(cmd *cobra.Command, p *time.Duration, name string, value time.Duration, what string) {
	*p = value
	cmd.Flags().Var(duration{p}, name, what)
}

// choice adds a flag that takes one of several values, the first by default, and completes them.
func choice(cmd *cobra.Command, p *string, name, short, what string, values ...string) {
	cmd.Flags().StringVarP(p, name, short, values[0], what+": "+strings.Join(values, ", "))
	complete(cmd, name, values...)
}

// checkChoice returns an error if a flag of choice has another value.
func checkChoice(name, value string, values ...string) error {
	if slices.Contains(values, value) {
		return nil
	}
	return fmt.Errorf("--%s: %q is not one of %s", name, value, strings.Join(values, ", "))
}

// complete makes the shell complete the values of a flag.
func complete(cmd *cobra.Command, flag string, values ...string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag is missing, or has completions already
	}
}

// completeTimes completes up to n arguments that are times.
func completeTimes(n int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= n {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return []string{"now", "now-5m", "now-1h", "now-24h"}, cobra.ShellCompDirectiveNoFileComp
	}
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version, and how restored machines are detected here",
		Example: "  traceflake version",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "traceflake %s\n%s %s/%s\nvmclock: %s\n",
				version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, machine(vmclock.System()))
			return err
		},
	}
}

// machine describes how a restore of the machine from a snapshot is detected here.
func machine(c *vmclock.Machine) string {
	source, err := c.Status()
	if err != nil {
		return fmt.Sprintf("%s (%s)", source, strings.TrimPrefix(err.Error(), "vmclock: "))
	}
	return source.String()
}
