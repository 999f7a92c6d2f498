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

// TraceIDIn returns the first ID of [TraceIDsIn].
func TraceIDIn(line string) (id trace.TraceID, err error) {
	ids, err := TraceIDsIn(line)
	if err == nil {
		id = ids[0]
	}
	return id, err
}

// TraceIDsIn returns the trace IDs in a line of any form that [Identifier.Line] reads, each once.
// If the line contains no trace ID, the error wraps [ErrUnknown].
func TraceIDsIn(line string) (ids []trace.TraceID, err error) {
	found, err := split(line)
	for _, f := range found {
		if f.Role != roleTrace && f.Role != "" {
			continue
		}
		id, idErr := parseTraceID(f.ID)
		switch {
		case idErr != nil:
			err = idErr
		case !slices.Contains(ids, id):
			ids = append(ids, id)
		}
	}
	switch {
	case ids != nil:
		return ids, nil
	case err != nil:
		return nil, err
	}
	return nil, fmt.Errorf("%w: %.60q contains no trace ID", ErrUnknown, line)
}

// parseTraceID reads a trace ID: 32 hex digits, also with dashes as in a UUID, in which PostgreSQL
// prints 128 bits, or in X-Ray's form 1-5e8e3a01-000102030405060708090a0b; a ULID; or 64 bits, in
// 16 hex digits or in decimal, which it pads with zeros. The error wraps [ErrUnknown].
func parseTraceID(s string) (id trace.TraceID, err error) {
	if id, ok := hex128(s); ok {
		return id, nil
	}
	if id, ok := ulid(s); ok {
		return id, nil
	}
	if low, _, ok := bits64(s); ok {
		binary.BigEndian.PutUint64(id[8:], low)
		return id, nil
	}
	return id, fmt.Errorf("%w: %s", ErrUnknown, complaint(s))
}

// hex128 reads 32 hex digits, not all zeros, with or without dashes.
func hex128(s string) (trace.TraceID, bool) {
	s = strings.TrimPrefix(s, "1-")
	id, err := trace.TraceIDFromHex(strings.ToLower(strings.ReplaceAll(s, "-", "")))
	return id, err == nil
}

var crockford = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ")

const ulidDigits = 26 // 130 bits; the first two are 0

// ulid reads the text of a ULID.
func ulid(s string) (trace.TraceID, bool) {
	const padding = "000000" // to whole bytes
	b, err := crockford.DecodeString(padding + strings.ToUpper(s))
	if err != nil || len(s) != ulidDigits || [4]byte(b) != [4]byte{} {
		return trace.TraceID{}, false
	}
	id := trace.TraceID(b[4:])
	return id, id.IsValid()
}

// bits64 reads 64 bits, not all zeros: 16 hex digits, or a decimal number of 14 digits or more.
func bits64(s string) (id uint64, isDecimal, ok bool) {
	if id, err := trace.SpanIDFromHex(strings.ToLower(s)); err == nil {
		return binary.BigEndian.Uint64(id[:]), false, true
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, true, err == nil && n > 0 && len(s) > base32Digits
}

const base32Digits = 13 // of 64 bits

// base32Text reads a Randflake ID in base 32. One ID in 500 000 has fewer than 10 digits; most
// words do.
func base32Text(s string) (randflake.ID, bool) {
	id, err := randflake.Parse(s)
	return id, err == nil && 10 <= len(s) && len(s) <= base32Digits
}

// complaint returns why s is not an ID.
func complaint(s string) string {
	switch {
	case s == "":
		return "it is empty"
	case strings.Trim(s, "0-") == "":
		return fmt.Sprintf("%.60q is all zeros, which is not a valid ID", s)
	case isHex(s):
		return fmt.Sprintf("%.60q has %d hex digits; "+
			"a trace ID has 32, a span ID or a short trace ID 16", s, len(s))
	}
	return fmt.Sprintf("%.60q does not look like an ID", s)
}

func isHex(s string) bool {
	return s != "" && strings.Trim(s, "0123456789abcdefABCDEF") == ""
}
