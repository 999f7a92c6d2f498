package cli

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// maxLine is the length of the longest line that is read.
const maxLine = 1 << 20

var (
	errTooLong = fmt.Errorf("the line is longer than %d MiB, so it was not read", maxLine>>20)
	errNoIDs   = errors.New("no IDs: give some as arguments, or on standard input, one per line")
)

// eachID calls each for the arguments or for standard input, as eachLine does. The problems that it
// returns are reported, and set the exit code to 1; an error ends the command.
func eachID(cmd *cobra.Command, args []string, each func(number int, text string, problem error) (reported, err error)) error {
	none, failed := true, false
	err := eachLine(cmd, args, func(number int, text string, problem error) (err error) {
		none = false
		if problem, err = each(number, text, problem); problem == nil {
			return err
		}
		failed = true
		if number > 0 {
			problem = fmt.Errorf("line %d: %w", number, problem)
		} else if info, statErr := os.Stat(text); statErr == nil && !info.IsDir() {
			problem = fmt.Errorf("%w; it is a file, and IDs are read from standard input: <%s", problem, text)
		}
		if !errors.Is(problem, errReported) {
			fmt.Fprintln(cmd.ErrOrStderr(), "traceflake:", problem)
		}
		return err
	})
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

// eachLine calls each for every argument, with number 0, or, without any or with "-" alone, for
// every line of standard input that is not blank, with its number. A line that is too long has an
// error instead of text. Before eachLine waits for input it flushes the output.
func eachLine(cmd *cobra.Command, args []string, each func(number int, text string, problem error) error) error {
	if len(args) > 0 && (len(args) > 1 || args[0] != "-") {
		for _, arg := range args {
			if err := each(0, arg, nil); err != nil {
				return err
			}
		}
		return nil
	}
	text, err := decompressed(cmd.InOrStdin())
	if err != nil {
		return err
	}
	r := bufio.NewReaderSize(text, maxLine)
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
		text, problem := strings.TrimSpace(string(line)), error(nil)
		for errors.Is(err, bufio.ErrBufferFull) {
			text, problem = "", errTooLong
			_, err = r.ReadSlice('\n')
		}
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return fmt.Errorf("reading: %w", err)
		}
		if text != "" || problem != nil {
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
