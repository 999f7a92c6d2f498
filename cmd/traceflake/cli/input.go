package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/identify"
)

var errNoIDs = errors.New("no IDs: give some as arguments, or on standard input, one per line")

// eachID calls each for the arguments and, in place of "-" or without arguments, for the lines of
// standard input. The problems that it returns are reported, and set the exit code to 1; an error
// ends the command. Unless every line must have an ID, lines without one are skipped if others have
// one: most lines of a log have none.
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
		text = strings.TrimSpace(text)
		if text == "" {
			return nil
		}
		none = false
		problem, err := each(number, text)
		switch unknown := errors.Is(problem, identify.ErrUnknown); {
		case problem == nil:
			found = true
		case number == 0 && unknown && isFile(text):
			report(fmt.Errorf("%w; to read the file, redirect it: <%s", problem, text))
		case number == 0, errors.Is(problem, errReported):
			report(problem)
		case every, !unknown:
			report(fmt.Errorf("line %d: %w", number, problem))
		case skipped == nil:
			skipped = fmt.Errorf("line %d: %w", number, problem)
		}
		return err
	}
	if len(args) == 0 {
		args = []string{"-"}
	}
	for _, arg := range args {
		var err error
		if arg == "-" {
			err = eachLine(cmd, one)
		} else {
			err = one(0, arg)
		}
		if err != nil {
			return err
		}
	}
	if skipped != nil && !found && !failed {
		report(skipped)
	}
	switch {
	case none:
		return errNoIDs
	case failed:
		return errReported
	}
	return nil
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// eachLine calls each for every line of standard input, with its number and without its end. Before
// it waits for input it flushes the output.
func eachLine(cmd *cobra.Command, each func(number int, text string) error) error {
	r := bufio.NewReaderSize(flushing{cmd.InOrStdin(), cmd}, 1<<16)
	for number := 1; ; number++ {
		line, err := r.ReadString('\n')
		last := errors.Is(err, io.EOF)
		switch {
		case err != nil && !last:
			return fmt.Errorf("line %d: %w", number, err)
		case last && line == "":
			return nil
		}
		// Some editors begin a file with a byte order mark.
		text := strings.TrimRight(strings.TrimPrefix(line, "\ufeff"), "\r\n")
		if err := each(number, text); err != nil || last {
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
