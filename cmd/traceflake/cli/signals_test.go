//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// SIGTERM, which deployments send, an interrupt, and a reader that closes the pipe end a command
// whose input is still open.
func TestSignals(t *testing.T) {
	for _, args := range []string{"new -n 1000000000", "inspect"} {
		input := strings.Repeat("2026-03-14T12:00:00Z\n", 10_000)
		ends := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGPIPE}
		if args == "inspect" { // it waits for another line
			input, ends = random+"\n", ends[:2]
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
				began := time.Now()
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
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("the end took %s", took)
				}
			})
		}
	}
}

// An interruption also ends a command whose input never does, within a line as well.
func TestEndlessInput(t *testing.T) {
	zeros, err := os.Open("/dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	defer zeros.Close()
	for _, command := range []string{"inspect"} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		ended := make(chan int, 1)
		go func() {
			ended <- run(ctx, strings.Fields(command), interruptible{zeros, ctx}, io.Discard,
				io.Discard)
		}()
		select {
		case code := <-ended:
			if code != 2 {
				t.Errorf("%s: code %d", command, code)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("%s goes on", command)
		}
	}
}
