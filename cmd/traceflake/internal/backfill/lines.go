package backfill

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lines reads lines and can unread some.
type lines struct {
	src    *bufio.Reader
	read   int64  // bytes
	number int64  // of the last line
	back   []byte // unread whole lines
	buf    []byte
	// long reports that the last line was cut at MaxRecord and has more parts.
	long bool
}

// next returns the next line with its line end, which the last one may lack. It is valid until the
// next call. A long line is followed by its next part. The error is io.EOF if there is no line, or
// an error of reading.
func (l *lines) next() ([]byte, error) {
	if !l.long {
		l.number++
	}
	l.long = false
	if len(l.back) > 0 {
		n := bytes.IndexByte(l.back, '\n') + 1
		if n == 0 {
			n = len(l.back)
		}
		line := l.back[:n]
		l.back = l.back[n:]
		return line, nil
	}
	l.buf = l.buf[:0]
	for {
		part, err := l.src.ReadSlice('\n')
		l.read += int64(len(part))
		if err == nil && len(l.buf) == 0 {
			return part, nil
		}
		l.buf = append(l.buf, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if len(l.buf) >= MaxRecord {
				l.long = true
				return l.buf, nil
			}
		case errors.Is(err, io.EOF):
			if len(l.buf) > 0 {
				return l.buf, nil
			}
			l.number--
			return nil, io.EOF
		default:
			return l.buf, err
		}
	}
}

// takeBack unreads n lines that next returned.
func (l *lines) takeBack(text []byte, n int64) {
	l.back = append(append([]byte(nil), text...), l.back...)
	l.number -= n
}

// bom returns the byte order mark at the beginning of the text, if there is one.
func (l *lines) bom() []byte {
	const mark = "\uFEFF"
	if start, err := l.src.Peek(len(mark)); err == nil && string(start) == mark {
		l.read += int64(len(mark))
		_, _ = l.src.Discard(len(mark)) // never fails: Peek returned these bytes
		return []byte(mark)
	}
	return nil
}

// content returns the line without its line end.
func content(line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r"))
}

var errLong = errors.New("the record is longer than 16 MiB; it is copied unchanged")
