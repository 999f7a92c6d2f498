// Package cli is the command traceflake. Programs can add their own lease stores to it:
//
//	package main
//
//	import (
//		"github.com/traceflake/traceflake/cmd/traceflake/cli"
//		_ "example.com/mystore" // mystore://
//	)
//
//	func main() { cli.Main() }
//
// All subcommands, such as `lease list`, `lease create` and doctor, then open the URLs of that
// store. The file store is included; the others are imported like mystore.
package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel"

	"github.com/traceflake/traceflake/internal/await"
	"github.com/traceflake/traceflake/internal/redact"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/fleet"
)

// Main runs the command with the arguments of the process, and exits.
func Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)   // so that a second signal ends the process
	signal.Ignore(syscall.SIGPIPE) // so that a write fails
	debug.SetGCPercent(400)        // the heap is small, and lists of IDs are long
	os.Exit(run(ctx, os.Args[1:], interruptible{os.Stdin, ctx}, os.Stdout, os.Stderr))
}

// grace is how long the wait for a call goes on after an interruption, for its own error.
const grace = 200 * time.Millisecond

// interruptible is a file whose Read returns when ctx ends, even if no input arrives. The process
// goes on then: the command may have to clean up.
type interruptible struct {
	*os.File
	ctx context.Context
}

func (f interruptible) Read(p []byte) (int, error) {
	buffer := make([]byte, len(p)) // the caller may reuse p when ctx ends
	n, err := await.Call(f.ctx, grace,
		func(context.Context) (int, error) { return f.File.Read(buffer) })
	return copy(p, buffer[:n]), cmp.Or(context.Cause(f.ctx), err)
}

// run runs the command and returns its exit code. Each problem is written to stderr by a goroutine
// of its own.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	terminal, _ := stdout.(*os.File)
	secrets := redact.Join(redact.Environment(os.Environ()), redact.Arguments(args))
	stdout, stderr = secrets.Writer(stdout), secrets.Writer(stderr)
	otel.SetErrorHandler(
		otel.ErrorHandlerFunc(func(err error) { fmt.Fprintln(stderr, "traceflake:", err) }))
	root := newRoot(terminal)
	root.SetArgs(append([]string{}, args...)) // nil would mean those of the process
	root.SetIn(stdin)
	root.SetOut(bufio.NewWriterSize(stdout, 1<<16))
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if flushErr := flush(root); flushErr != nil && (err == nil || errors.Is(err, errReported)) {
		err = flushErr
	}
	interrupted := context.Cause(ctx)
	switch {
	case err == nil:
		return 0
	case interrupted != nil && !errors.Is(err, interrupted):
		err = fmt.Errorf("%w: %w", interrupted, err)
	case errors.Is(err, errReported):
		return 1
	case isClosedPipe(err):
		return 2
	}
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		secrets = redact.Join(secrets, redact.Setting("", bad.GetValue()))
	}
	fmt.Fprintln(stderr, "traceflake:", secrets.Error(lease.Advise(err)))
	return 2
}

// isClosedPipe reports whether a file, such as stdout, is a pipe that nobody reads.
func isClosedPipe(err error) bool {
	_, file := errors.AsType[*fs.PathError](err)
	return file && errors.Is(err, syscall.EPIPE)
}

// flush writes the buffered output of a command.
func flush(cmd *cobra.Command) error {
	if err := cmd.OutOrStdout().(*bufio.Writer).Flush(); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// errReported sets the exit code to 1: some input was wrong, and that has been reported.
var errReported = errors.New("problems were reported")

// newRoot returns the command. The terminal is the output, or nil if the output is not a terminal.
func newRoot(terminal *os.File) *cobra.Command {
	f := commonFlags{env: sync.OnceValues(fleet.Env)}
	root := group(&cobra.Command{
		Use:   "traceflake",
		Short: "Decode, generate and verify trace IDs that sort by time",
		Long: `traceflake decodes, generates and verifies trace and span IDs, and manages lease
stores and their secrets.

Exit codes: 0, success; 1, an ID was not verified or not found, some input was not
understood, or doctor found a problem; 2, wrong usage, an unreadable secret or an
unreachable store.`,
		Example: `  traceflake new -n 3
  traceflake inspect 1950fb0f8880000086cdcca4ab608495
  traceflake inspect <error.log`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}, inspectCommand(&f), traceCommand(terminal), newCommand(&f),
		leaseCommand(&f), doctorCommand(&f), clickhouseCommand(), versionCommand())
	for _, cmd := range root.Commands() {
		checkArgs(cmd)
	}
	root.SetUsageTemplate(
		strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsages | switches"))
	return root
}

func init() {
	// --verify in place of --verify[=true|false]
	const values = "[=true|false]"
	cobra.AddTemplateFunc("switches", func(usages string) string {
		return strings.ReplaceAll(usages, values, strings.Repeat(" ", len(values)))
	})
}

// group returns a command with subcommands.
func group(cmd *cobra.Command, subcommands ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(subcommands...)
	return cmd
}

// checkArgs lets a command without a check of its own take no arguments, which cobra would ignore.
func checkArgs(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		checkArgs(sub)
	}
	if cmd.Args == nil {
		cmd.Args = cobra.NoArgs
	}
	if !cmd.Runnable() {
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
}
