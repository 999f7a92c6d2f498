package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// maxLine is the maximum length of a line: 1000 spans, which trace prints in a line of JSON, have a
// few MiB.
const maxLine = 16 << 20

var (
	errTooLong = fmt.Errorf("the line is longer than %d MiB, so it was not read", maxLine>>20)
	errNoIDs   = errors.New("no IDs: give some as arguments, or on standard input, one per line")
)

// eachID calls each for the arguments and, in place of "-" or without arguments, for the lines of
// standard input, as eachLine does. The problems that it returns are reported, and set the exit
// code to 1; an error ends the command.
func eachID(cmd *cobra.Command, args []string,
	each func(number int, text string, problem error) (reported, err error),
) error {
	none, failed := true, false
	one := func(number int, text string, problem error) error {
		text = strings.TrimSpace(text)
		if text == "" && problem == nil {
			return nil
		}
		none = false
		problem, err := each(number, text, problem)
		if problem == nil {
			return err
		}
		failed = true
		switch {
		case errors.Is(problem, errReported):
		case number > 0:
			fmt.Fprintf(cmd.ErrOrStderr(), "traceflake: line %d: %v\n", number, problem)
		default:
			fmt.Fprintln(cmd.ErrOrStderr(), "traceflake:", problem)
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
			err = one(0, arg, nil)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case none:
		return errNoIDs
	case failed:
		return errReported
	}
	return nil
}

// eachLine calls each for every line of standard input, with its number and without its end. A line
// that is too long has an error instead of text. Before eachLine waits for input it flushes the
// output.
func eachLine(cmd *cobra.Command, each func(number int, text string, problem error) error) error {
	r := bufio.NewReaderSize(cmd.InOrStdin(), 1<<16)
	for number := 1; ; number++ {
		if known, _ := r.Peek(r.Buffered()); !bytes.Contains(known, []byte("\n")) {
			if err := flush(cmd); err != nil {
				return err
			}
		}
		line, err := readLine(r)
		last := errors.Is(err, io.EOF)
		switch {
		case err != nil && !last:
			return fmt.Errorf("reading: %w", err)
		case last && line == "":
			return nil
		}
		var problem error
		if len(line) > maxLine {
			line, problem = "", errTooLong
		}
		// Some editors begin a file with a byte order mark.
		text := strings.TrimRight(strings.TrimPrefix(line, "\ufeff"), "\r\n")
		if err := each(number, text, problem); err != nil || last {
			return err
		}
	}
}

// readLine reads a line to its end, and returns no more of it than is needed to see that it is too
// long.
func readLine(r *bufio.Reader) (line string, err error) {
	var b strings.Builder
	for {
		part, err := r.ReadSlice('\n')
		if b.Len() <= maxLine {
			b.Write(part)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return b.String(), err
		}
	}
}
