package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
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

// addHelp adds cobra's help command, to which an unknown topic is an error.
func addHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		panic(err) // it was just added
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

// addCompletion adds cobra's completion command, to which an unknown shell is an error.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		group(completion)
	}
}
