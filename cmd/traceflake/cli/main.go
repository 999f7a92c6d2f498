// Package cli is the command traceflake, for programs that add lease stores of their own to it:
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
// All subcommands, `lease list`, `lease raise` and doctor included, then open the URLs of that
// store. The bolt store is always there; the others are imported like mystore.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel"

	"github.com/traceflake/traceflake/setup"
)

// Main runs the command with the arguments of the process, and exits.
func Main() {
	const ample = 400 // a run is short, so it can use more memory than a server
	debug.SetGCPercent(ample)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so that a second signal ends the process
	code := run(ctx, os.Args[1:], &interruptible{File: os.Stdin, ctx: ctx}, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// interruptible is a file whose Read returns when ctx ends, even if no input arrives.
type interruptible struct {
	*os.File
	ctx    context.Context
	buffer []byte // the caller's is its own again when ctx ends
}

func (f *interruptible) Read(p []byte) (int, error) {
	if len(f.buffer) < len(p) {
		f.buffer = make([]byte, len(p))
	}
	var n int
	var err error
	done := make(chan struct{})
	go func() {
		n, err = f.File.Read(f.buffer[:len(p)])
		close(done)
	}()
	select {
	case <-done:
		return copy(p, f.buffer[:n]), err
	case <-f.ctx.Done():
		return 0, context.Cause(f.ctx)
	}
}

// run runs the command and returns its exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, to io.Writer) int {
	stderr := &lockedWriter{to: to}
	defer stderr.close()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { fmt.Fprintln(stderr, "traceflake:", err) }))
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	out := newOutput(stdout)
	root.SetOut(out)
	root.SetErr(stderr)
	addCompletion(root)
	err := root.ExecuteContext(ctx)
	if flushErr := out.flush(); flushErr != nil && (err == nil || errors.Is(err, errReported)) {
		err = flushErr
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errReported):
		return 1
	}
	fmt.Fprintln(stderr, "traceflake:", err)
	return 2
}

// lockedWriter is standard error until close. Problems are reported on goroutines of their own.
type lockedWriter struct {
	mu sync.Mutex
	to io.Writer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}

func (w *lockedWriter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.to = io.Discard
}

// errReported sets the exit code to 1: some input was wrong, and that has been reported.
var errReported = errors.New("reported")

func newRoot() *cobra.Command {
	f := flags{env: sync.OnceValues(setup.Env)}
	root := group(&cobra.Command{
		Use:   "traceflake",
		Short: "Decode, generate and verify trace IDs that sort by time",
		Long: `traceflake decodes, generates and verifies trace and span IDs, adds trace IDs to
old records, and manages secrets and leases.

Exit codes: 0, success; 1, an ID was not verified or some input was not
understood; 2, wrong usage, an unreadable secret or an unreachable store.`,
		Example: `  traceflake new -n 3
  traceflake inspect 1950fb0f8880000086cdcca4ab608495
  traceflake range now-1h now -o sql`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	},
		inspectCommand(&f), newCommand(&f), rangeCommand(), keygenCommand(), verifyCommand(&f),
		backfillCommand(&f), leaseCommand(&f), proxyCommand(&f), doctorCommand(&f), sqlCommand(), clickhouseCommand(), versionCommand(),
	)
	root.SetHelpCommand(helpCommand(root))
	root.SetFlagErrorFunc(explainFlag)
	explainArgs(root)
	return root
}

const module = "github.com/traceflake/traceflake/cmd/traceflake"

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps { // in another program
		if m.Path == module {
			return m.Version
		}
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && v == "(devel)" {
			v += " " + s.Value
		}
	}
	return v
}
