// Command traceflake shows what trace and span IDs say, makes and verifies
// them, fills them into old records, and looks after secrets and leases.
//
//	go install github.com/traceflake/traceflake/cmd/traceflake@latest
//
// Exit codes: 0, all is well; 1, an ID is not verified, or some input was not
// understood and reported; 2, wrong usage or nothing could be done: an
// unreadable secret, a store that is away.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel"

	_ "github.com/traceflake/traceflake/randflake/lease/etcdstore" // etcd://, etcds://
	_ "github.com/traceflake/traceflake/randflake/lease/pgstore"   // postgres://
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run runs the command and returns its exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { fmt.Fprintln(stderr, "traceflake:", err) }))
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errReported):
		return 1
	}
	fmt.Fprintln(stderr, "traceflake:", err)
	return 2
}

// errReported ends with code 1: some input is not as it should be, and the
// output says so.
var errReported = errors.New("reported")

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "traceflake",
		Short: "Show, make and verify trace and span IDs that sort by time",
		Long: `traceflake shows what trace and span IDs say, makes and verifies them, fills
them into old records, and looks after secrets and leases.

Exit codes: 0, all is well; 1, an ID is not verified or some input was not
understood; 2, wrong usage, an unreadable secret or a store that is away.`,
		Version:       version(),
		Args:          cobra.NoArgs,
		RunE:          subcommands,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	var f flags
	root.PersistentFlags().StringVar(&f.secretFile, "secret-file", "", "file with the secrets, one a line, the first makes IDs (default $TRACEFLAKE_SECRET_FILE)")
	root.AddCommand(
		inspectCommand(&f), newCommand(&f), rangeCommand(), keygenCommand(), verifyCommand(&f),
		backfillCommand(&f), leaseCommand(&f), sqlCommand(), clickhouseCommand(),
	)
	return root
}

// subcommands is what a command does that only has some.
func subcommands(cmd *cobra.Command, _ []string) error {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return fmt.Errorf("%s: say which: %s", cmd.CommandPath(), strings.Join(names, ", "))
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && v == "(devel)" {
			v += " " + s.Value
		}
	}
	return v
}
