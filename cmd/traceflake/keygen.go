package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/internal/entropy"
)

func keygenCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "keygen [FILE]",
		Short: "Generate a secret",
		Long: `keygen generates a secret of 128 random bits and writes it to FILE, or to standard
output if FILE is missing or "-". The file must not exist; its mode will be 0600.`,
		Example: `  traceflake keygen /etc/traceflake/secret
  traceflake keygen | kubectl create secret generic traceflake --from-file=secret=/dev/stdin`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("secret-file") {
				return errors.New("--secret-file is for reading; give the new file as an argument: traceflake keygen FILE")
			}
			var secret [16]byte
			entropy.Read(secret[:])
			text := hex.EncodeToString(secret[:]) + "\n"
			if len(args) == 0 || args[0] == "-" {
				_, err := fmt.Fprint(cmd.OutOrStdout(), text)
				return err
			}
			file, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return err
			}
			_, err = file.WriteString(text)
			return errors.Join(err, file.Close())
		},
	}
}
