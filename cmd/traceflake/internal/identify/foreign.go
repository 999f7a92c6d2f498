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

// completed returns a candidate of kinds with its other fields.
func (x Identifier) completed(c Candidate, id trace.TraceID) Candidate {
	switch c.Kind {
	case kindTraceflake:
		return x.ours(c, id)
	case kindULID:
		c.Parts.Text = ulid.ULID(id).String()
		c.Note = "by its time only"
	case kindXRay:
		c.Parts.XRayForm = fmt.Sprintf("1-%x-%x", id[:4], id[4:])
		c.Note = "by its time only; Brave's IDs begin with Unix seconds, too"
	case kindDatadog:
		c.Parts.DatadogHigh = hex.EncodeToString(id[:8])
		c.Parts.Low = strconv.FormatUint(binary.BigEndian.Uint64(id[8:]), 10)
	case kindRandom:
		c.Note = "W3C trace context or B3, from any tracer"
	}
	return c
}

// hex128 reads 32 hex digits.
func (x Identifier) hex128(s string) (all []Candidate) {
	id, err := trace.TraceIDFromHex(strings.ToLower(s))
	if err != nil {
		return nil
	}
	if [8]byte(id[:8]) == [8]byte{} {
		all = x.hex64(s[16:])
		for i := range all {
			all[i].Note += "; padded to 128 bits with zeros"
		}
		return all
	}
	for _, c := range kinds(id, x.Now) {
		all = append(all, x.completed(c, id))
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
	if len(s) > len("18446744073709551615") {
		return nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if signed, signedErr := strconv.ParseInt(s, 10, 64); signedErr == nil && signed < 0 {
		n, err = uint64(signed), nil
	}
	if err != nil || n == 0 {
		return nil
	}
	return append(x.randflake(randflake.ID(n)),
		Candidate{Kind: kindShort, Note: "in decimal, as Datadog and others write B3's trace and span IDs", FalsePositives: 1})
}

// written returns the kind of an ID in a text form that only that kind has.
func (x Identifier) written(kind string, id trace.TraceID) []Candidate {
	for _, c := range kinds(id, x.Now) {
		if c.Kind == kind {
			c = x.completed(c, id)
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
