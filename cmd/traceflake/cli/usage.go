package cli

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
		return unknown(cmd, args[0])
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(subcommands...)
	return cmd
}

func unknown(cmd *cobra.Command, name string) error {
	text := fmt.Sprintf("unknown command %q for %q", name, cmd.CommandPath())
	if names := cmd.SuggestionsFor(name); len(names) > 0 {
		return fmt.Errorf("%s; did you mean %s?", text, strings.Join(names, " or "))
	}
	return fmt.Errorf("%s; %s --help lists all commands", text, cmd.CommandPath())
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
				err = unknown(cmd, rest[0])
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

// explainArgs adds the usage to errors about the number of arguments.
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
		return fmt.Errorf("%q: wrong number of arguments; usage: %s %s", args, cmd.Parent().CommandPath(), cmd.Use)
	}
}

// explainFlag turns an error about a flag into one that says what to write.
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

// String leaves the default out of the help if it is zero.
func (d duration) String() string {
	if *d.Duration == 0 {
		return "0"
	}
	return shortly(*d.Duration)
}

// durationFlag adds a flag for a duration.
func durationFlag(cmd *cobra.Command, p *time.Duration, name string, value time.Duration, what string) {
	*p = value
	cmd.Flags().Var(duration{p}, name, what)
	complete(cmd, name, cobra.ShellCompDirectiveNoFileComp, "2s", "1m", "1h", "24h", "30d")
}

// choice is a flag that takes one of several values.
type choice struct {
	value string
	among []string
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return "string" }

func (c *choice) Set(s string) error {
	if !slices.Contains(c.among, s) {
		return fmt.Errorf("%q is not one of %s", s, strings.Join(c.among, ", "))
	}
	c.value = s
	return nil
}

// choiceFlag adds a flag that takes one of several values, the first by default, and returns where
// its value is.
func choiceFlag(cmd *cobra.Command, name, short, what string, values ...string) *string {
	c := &choice{values[0], values}
	cmd.Flags().VarP(c, name, short, what+": "+strings.Join(values, ", "))
	complete(cmd, name, cobra.ShellCompDirectiveNoFileComp, values...)
	return &c.value
}

// outputFlag adds the flag -o to a command that prints text or JSON.
func outputFlag(cmd *cobra.Command) *string {
	return choiceFlag(cmd, "output", "o", "form of the output, json with one object per line", "text", "json")
}

// complete sets the values of a flag that the shell completes.
func complete(cmd *cobra.Command, flag string, directive cobra.ShellCompDirective, values ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, directive)); err != nil {
		panic(err) // the flag is missing, or has completions already
	}
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version, and how a restored machine is detected",
		Example: "  traceflake version",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "traceflake %s\n%s %s/%s\nvmclock: %s\n",
				version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, machine(vmclock.System()))
			return err
		},
	}
}

// machine describes how a restore of the machine from a snapshot is detected.
func machine(c *vmclock.Machine) string {
	source, err := c.Status()
	if err != nil {
		return fmt.Sprintf("%s (%s)", source, strings.TrimPrefix(err.Error(), "vmclock: "))
	}
	return source.String()
}
