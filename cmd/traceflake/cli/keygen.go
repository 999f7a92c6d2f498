package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func keygenCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "keygen [FILE]",
		Short: "Generate a secret",
		Long: `keygen generates a secret of 128 random bits and writes it to FILE, or to standard
output if FILE is missing or "-". The file must not exist; its mode will be 0600.

It is for "backfill --deterministic". The secret of a lease store is written by
"lease create".`,
		Example: `  traceflake keygen secret`,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "-" {
				_, err := fmt.Fprint(cmd.OutOrStdout(), newSecret())
				return err
			}
			return writeSecret(args[0])
		},
	}
}
