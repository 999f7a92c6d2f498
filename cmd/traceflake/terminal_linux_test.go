package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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

// Colours are only for terminals, and not with NO_COLOR.
func TestColours(t *testing.T) {
	secret := write(t, "secret", secretA)
	id := strings.TrimSpace(command(t, "", "new", "--secret-file", secret).out)
	args := []string{"verify", "--secret-file", secret, id, "4bf92f3577b34da6a3ce929d0e0e4736"}
	show := func() string {
		return onTerminal(t, func(tty *os.File) {
			if code := run(t.Context(), args, strings.NewReader(""), tty, io.Discard); code != 1 {
				t.Errorf("code %d", code)
			}
		})
	}
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	if got := show(); !strings.Contains(got, "\x1b[32mverified\x1b[0m") || !strings.Contains(got, "\x1b[31mnot verified\x1b[0m") {
		t.Errorf("on a terminal: %q", got)
	}
	t.Setenv("NO_COLOR", "1")
	if got := show(); strings.Contains(got, "\x1b") || !strings.Contains(got, "not verified") {
		t.Errorf("with NO_COLOR: %q", got)
	}
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "dumb")
	if got := show(); strings.Contains(got, "\x1b") {
		t.Errorf("on a dumb terminal: %q", got)
	}
	t.Setenv("TERM", "xterm")
	if r := command(t, "", args...); strings.Contains(r.out, "\x1b") {
		t.Errorf("in a pipe: %q", r.out)
	}
}

// A terminal shows each line at once.
func TestTerminalIsNotBuffered(t *testing.T) {
	onTerminal(t, func(tty *os.File) {
		o := newOutput(tty)
		if _, err := io.WriteString(o, "now"); err != nil || o.buffer != nil {
			t.Errorf("%v, a buffer: %v", err, o.buffer != nil)
		}
	})
}
