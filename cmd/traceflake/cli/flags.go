package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/internal/duration"
)

// outputFlag adds the flag -o to a command, and returns a pointer to its value: text or json.
func outputFlag(cmd *cobra.Command) *string {
	value := "text"
	cmd.Flags().FuncP("output", "o", "output format: text, json; json has one object per line",
		func(s string) error {
			if s != "text" && s != "json" {
				return fmt.Errorf("%q is not one of text, json", s)
			}
			value = s
			return nil
		})
	cmd.Flags().Lookup("output").DefValue = value
	return &value
}

// show writes a record as text, or as a line of JSON.
func show(to io.Writer, output, text string, record any) error {
	if output == "json" {
		return json.NewEncoder(to).Encode(record)
	}
	_, err := io.WriteString(to, text)
	return err
}

// durationFlag adds a flag for a duration, such as 30d or 1h30m.
func durationFlag(cmd *cobra.Command, p *time.Duration, name string, value time.Duration,
	what string) {
	*p = value
	cmd.Flags().Func(name, what, func(text string) (err error) {
		if *p, err = duration.Parse(text); err == nil && *p < 0 {
			err = errors.New("it is negative")
		}
		return err
	})
	if value > 0 { // otherwise the help explains the default
		cmd.Flags().Lookup(name).DefValue = shortly(value)
	}
}

// shortly formats a duration as flags do: 30d, 1h30m.
func shortly(d time.Duration) string { return model.Duration(d).String() }
