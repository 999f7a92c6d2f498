package identify

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/oklog/ulid/v2"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/traceid"
)

// candidate returns an ID as another kind than ours.
func candidate(k traceid.Kind, id trace.TraceID) Candidate {
	c := Candidate{Kind: k.Name, Chance: k.Chance}
	if !k.Time.IsZero() {
		c.Time = &k.Time
	}
	switch k.Name {
	case traceid.KindULID:
		c.Parts.add("text", ulid.ULID(id))
		c.Note = "by its time only"
	case traceid.KindXRay:
		c.Parts.add("X-Ray form", fmt.Sprintf("1-%x-%x", id[:4], id[4:]))
		c.Note = "by its time only; Brave's IDs begin with Unix seconds, too"
	case traceid.KindDatadog:
		c.Parts.add("_dd.p.tid", hex.EncodeToString(id[:8]))
		// As text: JSON readers may round such a number.
		c.Parts.add("low 64 bits", strconv.FormatUint(binary.BigEndian.Uint64(id[8:]), 10))
	case traceid.KindRandom:
		c.Note = "W3C trace context or B3, from any tracer"
	}
	return c
}

// written returns the kind of an ID in a text form that only that kind has.
func (x Identifier) written(kind string, id trace.TraceID) []Candidate {
	for _, k := range traceid.Kinds(id, x.Now) {
		if k.Name == kind {
			c := candidate(k, id)
			c.Note = ""
			return []Candidate{c}
		}
	}
	return []Candidate{{Kind: kind, Chance: 1, Note: "by its form only; its time is not plausible"}}
}

// uuid reads the dashed form, in which PostgreSQL prints any 128 bits.
func (x Identifier) uuid(s string) []Candidate {
	s = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(s, "urn:uuid:"), "{"), "}")
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return nil
	}
	return x.hex128(s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:])
}

// ulid reads the text form of ULIDs.
func (x Identifier) ulid(s string) []Candidate {
	if len(s) != ulid.EncodedSize {
		return nil
	}
	id, err := ulid.ParseStrict(s)
	if err != nil || id == (ulid.ULID{}) {
		return nil
	}
	return x.written(traceid.KindULID, trace.TraceID(id))
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
	return x.written(traceid.KindXRay, trace.TraceID(id))
}
