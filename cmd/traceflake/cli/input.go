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

// reading says what a command does with its input.
type reading struct {
	// each is called for each argument, with number 0, or for each line of standard input that is
	// not blank, with its number. A line that is too long has no text.
	each func(number int, line string) error
	// idle is called before the next line is awaited.
	idle func() error
}

// read reads the arguments. Without any, or with "-" alone, it reads standard input.
func (l reading) read(cmd *cobra.Command, args []string) error {
	err := l.readAll(cmd, args)
	return errors.Join(err, l.idle())
}

func (l reading) readAll(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && (len(args) > 1 || args[0] != "-") {
		for _, arg := range args {
			if err := l.each(0, arg); err != nil {
				return err
			}
		}
		return nil
	}
	in := cmd.InOrStdin()
	if file, ok := in.(interface{ Stat() (os.FileInfo, error) }); ok && len(args) == 0 {
		if info, err := file.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return errors.New("no IDs: give some as arguments, or on standard input, one per line")
		}
	}
	text, err := decompressed(in)
	if err != nil {
		return err
	}
	r := bufio.NewReaderSize(text, maxLine)
	for number := 1; ; number++ {
		if err := context.Cause(cmd.Context()); err != nil {
			return err
		}
		if r.Buffered() == 0 {
			if err := errors.Join(l.idle(), flush(cmd)); err != nil {
				return err
			}
		}
		line, err := r.ReadSlice('\n')
		text := string(line)
		if errors.Is(err, bufio.ErrBufferFull) {
			text = tooLong
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = r.ReadSlice('\n')
		}
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return fmt.Errorf("reading: %w", err)
		}
		if strings.TrimSpace(text) != "" {
			if err := l.each(number, text); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
	}
}

// maxLine is the length of the longest line that is read.
const maxLine = 1 << 20

// tooLong stands for a longer line.
const tooLong = "\x00too long"

var errTooLong = fmt.Errorf("the line is longer than %d MiB, so it was not read", maxLine>>20)

// flush writes what is buffered of a command's output.
func flush(cmd *cobra.Command) error {
	if out, ok := cmd.OutOrStdout().(*output); ok {
		return out.flush()
	}
	return nil
}

// decompressed returns a reader of r that decompresses gzip.
func decompressed(r io.Reader) (io.Reader, error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	if head, _ := buffered.Peek(len(gzipMagic)); string(head) != gzipMagic {
		return buffered, nil // the next read returns this error
	}
	z, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, fmt.Errorf("reading: %w", err)
	}
	return z, nil
}

const gzipMagic = "\x1f\x8b\x08" // the third byte is deflate, the only method

// hint returns what to do about an argument that is not an ID but a file.
func hint(number int, arg string) string {
	if info, err := os.Stat(arg); number > 0 || err != nil || info.IsDir() {
		return ""
	}
	return "; it is a file, and IDs are read from standard input: <" + arg
}

// place returns the line number for an error, or "" for an argument.
func place(number int) string {
	if number == 0 {
		return ""
	}
	return fmt.Sprintf("line %d: ", number)
}
