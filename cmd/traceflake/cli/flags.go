package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

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
	missing, ok := errors.AsType[*pflag.NotExistError](err)
	if ok && strings.Trim(missing.GetSpecifiedName(), "0123456789") == "" {
		return fmt.Errorf(`%w: write "--" in front of arguments that begin with "-"`, err)
	}
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

// needs returns an error if a flag is given that has no effect without others.
func needs(cmd *cobra.Command, flag, others string, met bool) error {
	if met || !cmd.Flags().Changed(flag) {
		return nil
	}
	return fmt.Errorf("--%s needs %s", flag, others)
}

// choiceFlag adds a flag that takes one of several values, the first by default, and returns a
// pointer to its value.
func choiceFlag(cmd *cobra.Command, name, short, what string, values ...string) *string {
	value, among := values[0], strings.Join(values, ", ")
	cmd.Flags().FuncP(name, short, what+": "+among, func(s string) error {
		if !slices.Contains(values, s) {
			return fmt.Errorf("%q is not one of %s", s, among)
		}
		value = s
		return nil
	})
	cmd.Flags().Lookup(name).DefValue = value
	if err := cmd.RegisterFlagCompletionFunc(name,
		cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag has completions already
	}
	return &value
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

// durationFlag adds a flag for a duration, such as 30d or 1h30m.
func durationFlag(cmd *cobra.Command, p *time.Duration, name string, value time.Duration,
	what string) {
	*p = value
	flag := cmd.Flags().VarPF((*model.Duration)(p), name, "", what)
	if value == 0 {
		flag.DefValue = "" // the help explains the default
	}
}

// shortly formats a duration as flags do: 30d, 1h30m.
func shortly(d time.Duration) string { return model.Duration(d).String() }
