package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/traceflake/traceflake/internal/vmclock"
)

// group returns a command that only has subcommands: without arguments it
// prints its help, and for a mistyped one it suggests a command.
func group(cmd *cobra.Command, subcommands ...*cobra.Command) *cobra.Command {
	const distance = 2
	cmd.SuggestionsMinimumDistance = distance
	cmd.Args = unknown
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(subcommands...)
	return cmd
}

// unknown returns an error if args contains arguments: they are not subcommands of cmd.
func unknown(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	names := strings.Join(cmd.SuggestionsFor(args[0]), " or ")
	if names == "" {
		return fmt.Errorf("unknown command %q for %q; see %[2]s --help", args[0], cmd.CommandPath())
	}
	return fmt.Errorf("unknown command %q for %q; did you mean %s?", args[0], cmd.CommandPath(),
		names)
}

// explainArgs adds the usage to errors about the number of arguments. A command without a check
// takes no arguments.
func explainArgs(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		explainArgs(sub)
	}
	check := cmd.Args
	if check == nil {
		check = cobra.ExactArgs(0)
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err != nil && !cmd.HasSubCommands() {
			err = fmt.Errorf("%w; usage: %s %s", err, cmd.Parent().CommandPath(), cmd.Use)
		}
		return err
	}
}

// invalid says what is wrong with a flag's value, by the type of the flag.
var invalid = map[string]string{
	"bool":     "is neither true nor false",
	"duration": "is not a duration such as 90s, 10m, 1h30m or 30d",
	"time":     "is not a date such as 2026-11-20",
	"int":      notNumber, "uint": notNumber, "uint16": notNumber, "uint32": notNumber,
}

const notNumber = "is not a whole number, or too large"

// explainFlag returns an error about a flag that shows a valid form.
func explainFlag(cmd *cobra.Command, err error) error {
	given, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	}
	flag, cause := given.GetFlag(), given.Unwrap()
	if text := invalid[flag.Value.Type()]; text != "" {
		cause = fmt.Errorf("%q %s", given.GetValue(), text)
	}
	return fmt.Errorf("--%s: %w", flag.Name, cause)
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

// choiceFlag adds a flag that takes one of several values, the first by default, and returns a
// pointer to its value.
func choiceFlag(cmd *cobra.Command, name, short, what string, values ...string) *string {
	c := &choice{values[0], values}
	cmd.Flags().VarP(c, name, short, what+": "+strings.Join(values, ", "))
	if err := cmd.RegisterFlagCompletionFunc(name,
		cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag has completions already
	}
	return &c.value
}

// outputFlag adds the flag -o to a command that prints text or JSON.
func outputFlag(cmd *cobra.Command) *string {
	return choiceFlag(cmd, "output", "o", "output format; json has one object per line",
		"text", "json")
}

// show writes a record as text, or as a line of JSON.
func show(cmd *cobra.Command, output string, text func() string, record any) error {
	if output == "json" {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(record)
	}
	_, err := io.WriteString(cmd.OutOrStdout(), text())
	return err
}

// addHelp adds cobra's help command, to which an unknown topic is an error.
func addHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, help := range root.Commands() {
		if help.Name() != "help" {
			continue
		}
		help.Use, help.Short, help.Long = "help [COMMAND]", "Print the help of a command", ""
		help.Example = "  traceflake help lease create"
		help.Args = cobra.ArbitraryArgs
		help.RunE = func(_ *cobra.Command, args []string) error {
			topic, rest, err := root.Find(args)
			if err = cmp.Or(err, unknown(topic, rest)); err != nil {
				return err
			}
			topic.InitDefaultHelpFlag()
			return topic.Help()
		}
	}
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version, and how a restored machine is detected",
		Example: "  traceflake version",
		RunE: func(cmd *cobra.Command, _ []string) error {
			source, why := vmclock.System().Status()
			detection := source.String()
			if why != nil {
				detection = fmt.Sprintf("%s (%s)", source,
					strings.TrimPrefix(why.Error(), "vmclock: "))
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "traceflake %s\n%s %s/%s\nvmclock: %s\n",
				version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, detection)
			return err
		},
	}
}
