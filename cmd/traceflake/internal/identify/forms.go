package identify

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/oklog/ulid/v2"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
)

// hex128 reads 32 hex digits.
func (x Identifier) hex128(s string) []Candidate {
	id, err := trace.TraceIDFromHex(strings.ToLower(s))
	if err != nil {
		return nil
	}
	if [8]byte(id[:8]) != [8]byte{} {
		return x.kinds(id)
	}
	all := x.hex64(s[16:])
	for i := range all {
		all[i].Note += "; padded to 128 bits with zeros"
	}
	return all
}

// hex64 reads 16 hex digits.
func (x Identifier) hex64(s string) []Candidate {
	id, err := trace.SpanIDFromHex(strings.ToLower(s))
	if err != nil {
		return nil
	}
	c := Candidate{Kind: kindShort, Note: "a B3 trace ID or a span ID from any tracer", FalsePositives: 1}
	if x.Keyring == nil {
		c.Note += "; a secret would identify ours"
	}
	return append(x.randflake(randflake.ID(binary.BigEndian.Uint64(id[:]))), c)
}

// decimal reads a number of 64 bits, signed or not.
func (x Identifier) decimal(s string) []Candidate {
	n, err := strconv.ParseUint(s, 10, 64)
	if signed, signedErr := strconv.ParseInt(s, 10, 64); signedErr == nil && signed < 0 {
		n, err = uint64(signed), nil
	}
	if err != nil || n == 0 || len(s) > len("18446744073709551615") { // zeros before it: hex digits
		return nil
	}
	return append(x.randflake(randflake.ID(n)),
		Candidate{Kind: kindShort, Note: "in decimal, as Datadog and others write B3's trace and span IDs", FalsePositives: 1})
}

// written returns the kind of an ID in a text form that only that kind has.
func (x Identifier) written(kind string, id trace.TraceID) []Candidate {
	for _, c := range x.kinds(id) {
		if c.Kind == kind {
			c.Note = ""
			return []Candidate{c}
		}
	}
	return []Candidate{{Kind: kind, FalsePositives: 1, Note: "by its form only; its time is not plausible"}}
}

// uuid reads the dashed form, in which PostgreSQL prints any 128 bits.
func (x Identifier) uuid(s string) []Candidate {
	s = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(s, "urn:uuid:"), "{"), "}")
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return nil
	}
	all := x.hex128(strings.ReplaceAll(s, "-", ""))
	if i := slices.IndexFunc(all, func(c Candidate) bool { return c.Kind == kindRandom }); i >= 0 && s[14] == '4' && strings.ContainsRune("89abAB", rune(s[19])) {
		all[i].Kind, all[i].Note = kindUUIDv4, "random, but for the version and variant"
	}
	return all
}

// ulid reads the text form of ULIDs.
func (x Identifier) ulid(s string) []Candidate {
	id, err := ulid.ParseStrict(s)
	if err != nil || id == (ulid.ULID{}) {
		return nil
	}
	return x.written(kindULID, trace.TraceID(id))
}

// xray reads the form 1-SECONDS-RANDOM.
func (x Identifier) xray(s string) []Candidate {
	if len(s) != 35 || !strings.HasPrefix(s, "1-") || s[10] != '-' {
		return nil
	}
	id, err := hex.DecodeString(s[2:10] + s[11:])
	if err != nil {
		return nil
	}
	return x.written(kindXRay, trace.TraceID(id))
}

// base32 reads the text form of Randflake IDs. One ID in 500 000 has fewer than 10 digits, and so
// have most words; 64 bits have at most 13.
func (x Identifier) base32(s string) []Candidate {
	id, err := randflake.Parse(s)
	if err != nil || len(s) < 10 || len(s) > 13 {
		return nil
	}
	if all := x.randflake(id); len(all) > 0 {
		return all
	}
	c := Candidate{Kind: kindRandflake, FalsePositives: 1, Parts: Parts{{"hex", fmt.Sprintf("%016x", uint64(id))}}}
	c.Note = "by its form only; a secret would decide"
	if x.Keyring != nil {
		c.Note = "by its form only; under no secret is its time in the past"
	}
	return []Candidate{c}
}
