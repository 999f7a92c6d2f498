package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// outputBuffer is the size of a write to a pipe or a file.
const outputBuffer = 64 << 10

// output is a command's output. On a terminal each line is shown at once, and in
// colour unless NO_COLOR is set; a pipe or a file is written in large pieces.
type output struct {
	io.Writer
	buffer *bufio.Writer // nil on a terminal
	colour bool
}

func newOutput(w io.Writer) *output {
	if isTerminal(w) {
		return &output{Writer: w, colour: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
	}
	buffer := bufio.NewWriterSize(w, outputBuffer)
	return &output{Writer: buffer, buffer: buffer}
}

func (o *output) flush() error {
	if o.buffer == nil {
		return nil
	}
	if err := o.buffer.Flush(); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

func isTerminal(w any) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Colours of ECMA-48.
const (
	red   = 31
	green = 32
)

// paint returns text in a colour, if the command's output shows colours.
func paint(cmd *cobra.Command, colour int, text string) string {
	if o, ok := cmd.OutOrStdout().(*output); !ok || !o.colour {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", colour, text)
}
