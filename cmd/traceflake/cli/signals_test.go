//go:build unix

package cli

import (
	"bufio"
	"bytes"
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
	for _, args := range []string{"new -n 1000000000", "inspect"} {
		input := strings.Repeat("2026-03-14T12:00:00Z\n", 10_000)
		ends := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGPIPE}
		if args == "inspect" { // it waits for the rest of a line
			input, ends = random+"\nx", ends[:2]
		}
		for _, sent := range ends {
			t.Run(args+", "+sent.String(), func(t *testing.T) {
				t.Parallel()
				cmd := exec.CommandContext(t.Context(), os.Args[0], strings.Fields(args)...)
				cmd.Env = append(os.Environ(), asCommand+"=yes")
				var errOut bytes.Buffer
				cmd.Stderr = &errOut
				stdin, err := cmd.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				stdout, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				go func() { _, _ = io.WriteString(stdin, input) }()
				if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
					t.Fatalf("%v\n%s", err, &errOut)
				}
				says := "signal"
				if sent == syscall.SIGPIPE {
					err, says = stdout.Close(), ""
				} else {
					err = cmd.Process.Signal(sent)
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
}
