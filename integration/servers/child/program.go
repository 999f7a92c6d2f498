package child

import (
	"fmt"
	"io"
	"os"
	"os/exec"
)

// self is the variable with the kind of server that a new process of this program is.
const self = "TRACEFLAKETEST_CHILD"

// Self returns a command that runs this program again as a server, for a kind that an init function
// passes to [Main]. The arguments are passed to serve.
func Self(kind string, args ...string) *exec.Cmd {
	program, err := os.Executable()
	if err != nil {
		program = os.Args[0]
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), self+"="+kind)
	return cmd
}

// Main returns immediately unless this process was started by [Self] to be a server of the kind.
// Otherwise it serves until standard input is closed, and ends the process.
func Main(kind string, serve func(args []string) error) {
	if os.Getenv(self) != kind {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	if err := serve(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", kind, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// supervise runs a program that knows nothing of [Main], and interrupts it when standard input is
// closed.
const supervise = `exec 3<&0
"$@" </dev/null 3<&- & server=$!
{ cat <&3; kill -INT $server; } >/dev/null 2>&1 &
exec 3<&-
wait $server`

// Foreign returns a command that runs a program until standard input is closed.
func Foreign(program string, args ...string) *exec.Cmd {
	return exec.Command("/bin/sh", append([]string{"-c", supervise, program, program}, args...)...)
}
