//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// SIGTERM, which deployments send, an interrupt, and a reader that closes the pipe end a command
// whose input is still open.
func TestSignals(t *testing.T) {
	for _, c := range []struct {
		args, input string
		sent        syscall.Signal
	}{
		{"new -n 1000000000", "", syscall.SIGTERM},
		{"new -n 1000000000", "", syscall.SIGPIPE},
		{"inspect", random + "\nx", syscall.SIGINT}, // it waits for the rest of a line
	} {
		t.Run(c.args+", "+c.sent.String(), func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], strings.Fields(c.args)...)
			cmd.Env = append(os.Environ(), asCommand+"=yes")
			var errOut bytes.Buffer
			cmd.Stderr = &errOut
			stdin, err1 := cmd.StdinPipe()
			stdout, err2 := cmd.StdoutPipe()
			if err := errors.Join(err1, err2, cmd.Start()); err != nil {
				t.Fatal(err)
			}
			_, err := io.WriteString(stdin, c.input)
			if _, failed := bufio.NewReader(stdout).ReadString('\n'); failed != nil || err != nil {
				t.Fatalf("%v, %v\n%s", err, failed, &errOut)
			}
			says := "signal"
			if c.sent == syscall.SIGPIPE {
				err, says = stdout.Close(), ""
			} else {
				err = cmd.Process.Signal(c.sent)
			}
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, stdout)
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 2 ||
				!strings.Contains(errOut.String(), says) || says == "" && errOut.Len() > 0 {
				t.Errorf("%s, output %s", cmd.ProcessState, &errOut)
			}
		})
	}
}
