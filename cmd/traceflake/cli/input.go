package cli

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/identify"
)

var errNoIDs = errors.New("no IDs: give some as arguments, or on standard input, one per line")

// eachID calls each for the arguments or, without arguments and for "-", for the lines of standard
// input. The problems that it returns are reported, and set the exit code to 1; an error ends the
// command. Unless every line must have an ID, lines without one are skipped if others have one:
// most lines of a log have none.
func eachID(cmd *cobra.Command, args []string, every bool,
	each func(number int, text string) (problem, err error)) error {
	var skipped error // the first problem that was not reported
	none, found, failed := true, false, false
	report := func(problem error) {
		failed = true
		if !errors.Is(problem, errReported) {
			fmt.Fprintln(cmd.ErrOrStderr(), "traceflake:", problem)
		}
	}
	one := func(number int, text string) error {
		if text = strings.TrimSpace(text); text == "" {
			return nil
		}
		none = false
		problem, err := each(number, text)
		unknown := errors.Is(problem, identify.ErrUnknown)
		switch {
		case problem == nil:
			found = true
			return err
		case number > 0:
			problem = fmt.Errorf("line %d: %w", number, problem)
		case unknown:
			problem = fmt.Errorf("%w; to read a file, redirect it: <FILE", problem)
		}
		if number > 0 && unknown && !every {
			skipped = cmp.Or(skipped, problem)
		} else {
			report(problem)
		}
		return err
	}
	var err error
	if len(args) == 0 || args[0] == "-" {
		err = eachLine(cmd, one)
	} else {
		for _, arg := range args {
			err = cmp.Or(err, one(0, arg))
		}
	}
	if skipped != nil && !found && !failed {
		report(skipped)
	}
	switch {
	case err != nil:
		return err
	case none:
		return errNoIDs
	case failed:
		return errReported
	}
	return nil
}

// eachLine calls each for every line of standard input, with its number. Before it waits for input
// it flushes the output.
func eachLine(cmd *cobra.Command, each func(number int, text string) error) error {
	r := bufio.NewReaderSize(flushing{cmd.InOrStdin(), cmd}, 1<<16)
	for number := 1; ; number++ {
		line, err := r.ReadString('\n')
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return fmt.Errorf("line %d: %w", number, err)
		}
		// Some editors begin a file with a byte order mark.
		if err := each(number, strings.TrimPrefix(line, "\ufeff")); err != nil || last {
			return err
		}
	}
}

// flushing is the input of a command, whose output is flushed before each read.
type flushing struct {
	io.Reader
	cmd *cobra.Command
}

func (f flushing) Read(p []byte) (int, error) {
	if err := flush(f.cmd); err != nil {
		return 0, err
	}
	return f.Reader.Read(p)
}
