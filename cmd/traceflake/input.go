package main

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

// eachLine calls f for each argument. Without arguments, or with "-" alone, it calls f for each
// line of standard input that is not blank. Number is the line number, or 0 for an argument.
func eachLine(cmd *cobra.Command, args []string, f func(number int, line string) error) error {
	if len(args) > 0 && (len(args) > 1 || args[0] != "-") {
		for _, arg := range args {
			if err := f(0, arg); err != nil {
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
		line, err := r.ReadSlice('\n')
		text := string(line)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = r.ReadSlice('\n') // no ID is that long
		}
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return fmt.Errorf("reading: %w", err)
		}
		if strings.TrimSpace(text) != "" {
			if err := f(number, text); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
	}
}

const maxLine = 1 << 16

// decompressed returns a reader of r that decompresses gzip.
func decompressed(r io.Reader) (io.Reader, error) {
	buffered := bufio.NewReaderSize(r, maxLine)
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

// place returns the line number for an error, or "" for an argument.
func place(number int) string {
	if number == 0 {
		return ""
	}
	return fmt.Sprintf("line %d: ", number)
}
