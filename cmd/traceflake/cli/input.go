package cli

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// maxLine is the maximum length of a line.
const maxLine = 1 << 20

var (
	errTooLong = fmt.Errorf("the line is longer than %d MiB, so it was not read", maxLine>>20)
	errNoIDs   = errors.New("no IDs: give some as arguments, or on standard input, one per line")
)

// eachID calls each for the arguments, or for standard input as eachLine does. The problems that it
// returns are reported, and set the exit code to 1; an error ends the command.
func eachID(cmd *cobra.Command, args []string,
	each func(number int, text string, problem error) (reported, err error),
) error {
	none, failed := true, false
	one := func(number int, text string, problem error) error {
		if text == "" && problem == nil {
			return nil
		}
		none = false
		problem, err := each(number, text, problem)
		if problem == nil {
			return err
		}
		failed = true
		if number > 0 {
			problem = fmt.Errorf("line %d: %w", number, problem)
		}
		if !errors.Is(problem, errReported) {
			fmt.Fprintln(cmd.ErrOrStderr(), "traceflake:", problem)
		}
		return err
	}
	var err error
	if len(args) == 0 || slices.Equal(args, []string{"-"}) {
		err = eachLine(cmd, one)
	} else {
		for _, arg := range args {
			if err = one(0, arg, nil); err != nil {
				break
			}
		}
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

// eachLine calls each for every line of standard input, with its number and without the spaces
// around it. A line that is too long has an error instead of text. Before eachLine waits for input
// it flushes the output. gzip is decompressed.
func eachLine(cmd *cobra.Command, each func(number int, text string, problem error) error) error {
	in, err := decompressed(cmd.InOrStdin())
	if err != nil {
		return err
	}
	r := bufio.NewReaderSize(in, maxLine)
	for number := 1; ; number++ {
		if err := context.Cause(cmd.Context()); err != nil {
			return err
		}
		if r.Buffered() == 0 {
			if err := flush(cmd); err != nil {
				return err
			}
		}
		line, err := r.ReadSlice('\n')
		// Some editors begin a file with a byte order mark.
		text, problem := strings.TrimSpace(strings.TrimPrefix(string(line), "\ufeff")), error(nil)
		for errors.Is(err, bufio.ErrBufferFull) {
			text, problem = "", errTooLong
			_, err = r.ReadSlice('\n')
		}
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return fmt.Errorf("reading: %w", err)
		}
		if len(line) > 0 || !last {
			if err := each(number, text, problem); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
	}
}

// decompressed returns a reader of r that decompresses gzip.
func decompressed(r io.Reader) (io.Reader, error) {
	const magic = "\x1f\x8b\x08" // the third byte is deflate, the only method
	buffered := bufio.NewReaderSize(r, 1<<16)
	if head, _ := buffered.Peek(len(magic)); string(head) != magic {
		return buffered, nil // the next read returns this error
	}
	z, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, fmt.Errorf("reading: %w", err)
	}
	return z, nil
}
