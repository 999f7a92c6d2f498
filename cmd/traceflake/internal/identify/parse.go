package identify

import (
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
)

// TraceIDsIn returns the trace IDs in a line of any form that [Identifier.Line] reads, each once.
// The error wraps [ErrUnknown]; the IDs that were understood are returned with it.
func TraceIDsIn(line string) (ids []trace.TraceID, err error) {
	found, err := split(line)
	for _, f := range found {
		if f.Role != roleTrace && f.Role != "" {
			continue
		}
		switch id, form := parse(f.ID); {
		case form == notBits:
			err = notAnID(f.ID)
		case !slices.Contains(ids, id):
			ids = append(ids, id)
		}
	}
	if ids == nil && err == nil {
		err = fmt.Errorf("%w: %.60q contains no trace ID", ErrUnknown, line)
	}
	return ids, err
}

// form is what the text of an ID looks like.
type form int

const (
	notBits   form = iota
	hex128         // 32 hex digits, also with dashes
	ulid           // in its own text form
	hex64          // 16 hex digits
	decimal64      // a decimal number of 14 digits or more
)

// parse reads an ID of 64 or 128 bits, not all zeros: 32 hex digits, also with dashes as in a UUID,
// in which PostgreSQL prints 128 bits, or in X-Ray's form 1-5e8e3a01-000102030405060708090a0b; a
// ULID; 16 hex digits; or a decimal number. It pads 64 bits with zeros.
func parse(s string) (id trace.TraceID, f form) {
	digits := strings.ReplaceAll(strings.TrimPrefix(s, "1-"), "-", "")
	if id, err := trace.TraceIDFromHex(strings.ToLower(digits)); err == nil {
		return id, hex128
	}
	if id, ok := parseULID(s); ok {
		return id, ulid
	}
	if low, err := trace.SpanIDFromHex(strings.ToLower(s)); err == nil {
		copy(id[8:], low[:])
		return id, hex64
	}
	if n, err := strconv.ParseUint(s, 10, 64); err == nil && n > 0 && len(s) > base32Digits {
		binary.BigEndian.PutUint64(id[8:], n)
		return id, decimal64
	}
	return id, notBits
}

var crockford = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ")

const ulidDigits = 26 // 130 bits; the first two are 0

// parseULID reads the text of a ULID.
func parseULID(s string) (trace.TraceID, bool) {
	const padding = "000000" // to whole bytes
	b, err := crockford.DecodeString(padding + strings.ToUpper(s))
	if err != nil || len(s) != ulidDigits || [4]byte(b) != [4]byte{} {
		return trace.TraceID{}, false
	}
	id := trace.TraceID(b[4:])
	return id, id.IsValid()
}

const base32Digits = 13 // of 64 bits

// base32Text reads a Randflake ID in base 32. One ID in 500 000 has fewer than 10 digits; most
// words do.
func base32Text(s string) (randflake.ID, bool) {
	id, err := randflake.Parse(s)
	return id, err == nil && 10 <= len(s) && len(s) <= base32Digits
}

// notAnID returns an error that says why s is not an ID.
func notAnID(s string) error {
	switch {
	case s == "":
		return fmt.Errorf("%w: it is empty", ErrUnknown)
	case strings.Trim(s, "0-") == "" && strings.Contains(s, "0"):
		return fmt.Errorf("%w: %.60q is all zeros, which is not a valid ID", ErrUnknown, s)
	case isHex(s):
		return fmt.Errorf("%w: %.60q has %d hex digits; a trace ID has 32, a span ID or a short "+
			"trace ID 16", ErrUnknown, s, len(s))
	}
	return fmt.Errorf("%w: %.60q does not look like an ID", ErrUnknown, s)
}

func isHex(s string) bool {
	return s != "" && strings.Trim(s, "0123456789abcdefABCDEF") == ""
}
