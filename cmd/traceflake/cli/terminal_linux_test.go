package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/traceflake/traceflake/setup"
)

// onTerminal runs f with a pseudo-terminal and returns the text that it shows.
func onTerminal(t *testing.T, f func(*os.File)) string {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminal: %v", err)
	}
	defer master.Close()
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	shown := make(chan string)
	go func() {
		text, _ := io.ReadAll(master) // returns EIO when the other end is closed
		shown <- string(text)
	}()
	f(slave)
	slave.Close()
	return <-shown
}

// Colours are only for terminals, and not with NO_COLOR. A terminal shows each line at once.
func TestTerminal(t *testing.T) {
	t.Setenv(setup.SecretFileVar, write(t, "secret", secretA))
	id := strings.TrimSpace(command(t, "", "new").out)
	for _, c := range []struct{ term, noColor, want string }{
		{"xterm", "", "\x1b[32mverified\x1b[0m\r\n" + random + "\t\x1b[31mnot verified\x1b[0m\tfuture"},
		{"xterm", "1", "\tverified\r\n" + random + "\tnot verified\tfuture"},
		{"dumb", "", "\tverified\r\n" + random + "\tnot verified\tfuture"},
	} {
		t.Setenv("TERM", c.term)
		t.Setenv("NO_COLOR", c.noColor)
		got := onTerminal(t, func(tty *os.File) {
			if code := run(t.Context(), []string{"verify", id, random}, nil, tty, io.Discard); code != 1 || newOutput(tty).buffer != nil {
				t.Errorf("code %d, or the output is buffered", code)
			}
		})
		if !strings.Contains(got, c.want) {
			t.Errorf("TERM=%s NO_COLOR=%s: %q, want %q", c.term, c.noColor, got, c.want)
		}
	}
}
