// Package child builds, starts, watches and stops the programs that tests run as child processes.
//
// A child's standard input is a pipe from this process. It closes even if this process is killed,
// and a child ends when it does: see [Main].
package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Server is a server that can be killed and started again with the data it had. Its methods are
// safe for concurrent use.
type Server struct {
	Name    string
	Dir     string                      // its folder, if Close shall remove one
	Address string                      // host:port on loopback, which Start chooses
	Command func() *exec.Cmd            // of each start
	Answers func(context.Context) error // nil once it is ready, for Wait

	mu    sync.Mutex
	cmd   *exec.Cmd // nil if it does not run
	stdin io.Closer
	log   *os.File // without a name
	ended chan struct{}
	exit  error // of the last process, once it has ended
}

// Start starts the server on a free port, and returns when it answers. If another process takes the
// port first, Start tries another port.
func (s *Server) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for try := 0; ; try++ {
		addresses, err := Addresses(1)
		if err == nil {
			s.Address = addresses[0]
			err = s.Run()
		}
		if err == nil {
			err = s.Wait(ctx)
		}
		if err == nil || try == 2 || ctx.Err() != nil {
			return err
		}
		_ = s.Stop()
	}
}

// Port returns the port of the address.
func (s *Server) Port() string { return s.Address[strings.LastIndex(s.Address, ":")+1:] }

// Wait waits until the server answers.
func (s *Server) Wait(ctx context.Context) error { return Ready(ctx, s.Answers, s) }

// Listens is a function for Answers: it connects to the address without sending a request, which
// would start a trace.
func (s *Server) Listens(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Address)
	if err == nil {
		err = conn.Close()
	}
	return err
}

// Close ends the server and removes its folder.
func (s *Server) Close() error {
	err := s.Stop()
	if s.Dir != "" {
		err = errors.Join(err, os.RemoveAll(s.Dir))
	}
	return err
}

// Run starts the server. It does nothing if the server runs.
func (s *Server) Run() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		return nil
	}
	log, err := os.CreateTemp("", "traceflake-log-")
	if err != nil {
		return err
	}
	if err := os.Remove(log.Name()); err != nil {
		return err
	}
	cmd, ended := s.Command(), make(chan struct{})
	cmd.Stderr = log
	if cmd.Stdout == nil {
		cmd.Stdout = log
	}
	if s.stdin, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	go func() {
		s.exit = cmd.Wait()
		close(ended)
	}()
	s.cmd, s.log, s.ended = cmd, log, ended
	return nil
}

// Ready waits until try succeeds. It fails at once if one of the servers has ended by itself, and
// the error then includes what the server wrote.
func Ready(ctx context.Context, try func(context.Context) error, servers ...*Server) error {
	for {
		call, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := try(call)
		cancel()
		if err == nil {
			return nil
		}
		for _, s := range servers {
			if ended := s.failure(); ended != nil {
				return ended
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("a server is not ready: %w: %w", ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// failure reports a server that has ended by itself.
func (s *Server) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return nil
	}
	select {
	case <-s.ended:
		return fmt.Errorf("%s ended by itself: %s", s.Name, s.written())
	default:
		return nil
	}
}

// Output returns what the server has written since its last start.
func (s *Server) Output() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written()
}

func (s *Server) written() string {
	if s.log == nil {
		return ""
	}
	text, err := io.ReadAll(io.NewSectionReader(s.log, 0, math.MaxInt64))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Kill ends the server as a crash does. The error reports a server that had ended by itself.
func (s *Server) Kill() error { return s.end(func() error { return s.cmd.Process.Kill() }) }

// Stop closes the server's standard input and waits until it ends. A server that does not end is
// killed.
func (s *Server) Stop() error {
	return s.end(func() error {
		process := s.cmd.Process
		// no other process: it was waited for
		time.AfterFunc(30*time.Second, func() { _ = process.Kill() })
		return s.stdin.Close()
	})
}

// Terminate sends SIGTERM, as a deployment does, and waits until the server ends. It returns an
// error if the server failed.
func (s *Server) Terminate() error {
	err := s.end(func() error { return s.cmd.Process.Signal(syscall.SIGTERM) })
	return errors.Join(err, s.exit)
}

func (s *Server) end(how func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return nil
	}
	err := how()
	<-s.ended
	if errors.Is(err, os.ErrProcessDone) || errors.Is(err, os.ErrClosed) {
		err = fmt.Errorf("%s ended by itself: %s", s.Name, s.written())
	}
	s.cmd = nil
	return err
}

// Signal sends a signal to the server, such as SIGSTOP or SIGCONT.
func (s *Server) Signal(signal syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return fmt.Errorf("%s is not running", s.Name)
	}
	return s.cmd.Process.Signal(signal)
}

// Addresses returns n addresses on loopback, host:port, whose ports are free now. They are below
// those of outgoing connections: one of these could take a port before a server starts, or while a
// killed one is down.
func Addresses(n int) (addresses []string, err error) {
	for tries := 0; len(addresses) < n; tries++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(22_000)))
		switch {
		case err == nil:
			defer func() { _ = l.Close() }() // all at the end, so that they differ
			addresses = append(addresses, l.Addr().String())
		case tries == 100*n:
			return nil, err
		}
	}
	return addresses, nil
}
