package identify

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// RandflakeID is the kind of our span IDs and low halves.
const RandflakeID = "Randflake ID"

const (
	randflakeYears = 34.02 // 2^30 s
	// agreement is the share of random low halves that agree with a clear half: five seconds out
	// of 2^30.
	agreement = 5.0 / (1 << 30)
)

var randflakeEpoch = time.Unix(randflake.Epoch, 0)

// ours adds to the candidate of a traceflake trace ID what the secrets tell.
func (x Identifier) ours(k traceid.Kind, id trace.TraceID) Candidate {
	c := Candidate{Kind: k.Name, Time: &k.Time, Chance: k.Chance}
	c.Parts.add("sequence", traceid.Sequence(id))
	if x.Keyring == nil {
		c.Note = "by its time only; a secret would decide"
		return c
	}
	info := traceid.Inspect(x.Keyring, id)
	switch {
	case info.Agree:
		c.Chance *= agreement * float64(len(x.Keyring.Codecs()))
		c.decoded(info.Parts, info.Secret)
		c.Parts.add("halves", "agree")
	case x.backfilled(&c, info):
	default:
		c.Parts.add("halves", "disagree")
		c.Note = "the low half does not match these secrets and that time: it is from another secret, random or deterministic"
	}
	return c
}

// backfilled recognises an ID of NewTraceIDAt: its low half was made later than the time of its
// clear half.
func (x Identifier) backfilled(c *Candidate, info traceid.Info) bool {
	for secret, codec := range x.Keyring.Codecs() {
		parts := codec.Decode(info.Low)
		from := randflakeEpoch
		if info.Time.After(from) {
			from = info.Time
		}
		if share := x.share(parts.Time, from, randflakeYears); share > 0 {
			c.Chance *= min(1, share*float64(len(x.Keyring.Codecs())))
			c.decoded(parts, secret)
			c.Parts.add("halves", "disagree")
			c.Note = "if it is ours, it was given to an old record at " + parts.Time.Format(time.RFC3339)
			return true
		}
	}
	return false
}

func (c *Candidate) decoded(p randflake.Parts, secret int) {
	c.Parts.add("second", p.Time.Format(time.RFC3339))
	c.Parts.add("node", p.Node)
	c.Parts.add("node sequence", p.Sequence)
	c.Parts.add("secret", secret+1)
	c.Node = &p.Node
}

// randflake returns the content of id under each secret, if it is plausible.
func (x Identifier) randflake(id randflake.ID) (all []Candidate) {
	if x.Keyring == nil || id == 0 {
		return nil
	}
	for secret, codec := range x.Keyring.Codecs() {
		parts := codec.Decode(id)
		chance := x.share(parts.Time, randflakeEpoch, randflakeYears)
		if chance == 0 {
			continue
		}
		c := Candidate{Kind: RandflakeID, Time: at(parts.Time), Chance: chance}
		c.decoded(parts, secret)
		c.Parts = c.Parts[1:] // the first part, the second, is already the time
		c.Parts.add("text", id)
		c.Note = "by its time only; 64 bits have no check"
		all = append(all, c)
	}
	return all
}

// hex128 reads 32 hex digits.
func (x Identifier) hex128(s string) []Candidate {
	id, err := trace.TraceIDFromHex(strings.ToLower(s))
	if err != nil {
		return nil
	}
	if [8]byte(id[:8]) == [8]byte{} {
		all := x.hex64(s[16:])
		for i := range all {
			all[i].Note = strings.TrimPrefix(all[i].Note+"; ", "; ") + "padded to 128 bits with zeros"
		}
		return all
	}
	var all []Candidate
	for _, k := range traceid.Kinds(id, x.Now) {
		if k.Name == traceid.KindTraceflake {
			all = append(all, x.ours(k, id))
		} else {
			all = append(all, candidate(k, id))
		}
	}
	return all
}

// hex64 reads 16 hex digits.
func (x Identifier) hex64(s string) []Candidate {
	id, err := trace.SpanIDFromHex(strings.ToLower(s))
	if err != nil {
		return nil
	}
	c := Candidate{Kind: traceid.KindShort, Note: "a B3 trace ID or a span ID from any tracer", Chance: 1}
	if x.Keyring == nil {
		c.Note += "; a secret would identify ours"
	}
	return append(x.randflake(randflake.ID(binary.BigEndian.Uint64(id[:]))), c)
}

// decimal reads a number of 64 bits, signed or not.
func (x Identifier) decimal(s string) []Candidate {
	if !isDigits(strings.TrimPrefix(s, "-")) {
		return nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if strings.HasPrefix(s, "-") {
		var signed int64
		signed, err = strconv.ParseInt(s, 10, 64)
		n = uint64(signed)
	}
	if err != nil || n == 0 {
		return nil
	}
	return append(x.randflake(randflake.ID(n)),
		Candidate{Kind: traceid.KindShort, Note: "in decimal, as Datadog and others write B3's trace and span IDs", Chance: 1})
}

// The number of digits of a text that may be an ID. One ID in 500 000 is shorter, and so are most
// words; 64 bits have at most 13.
const (
	minText = 10
	maxText = 13
)

// base32 reads the text form of Randflake IDs.
func (x Identifier) base32(s string) []Candidate {
	if len(s) < minText || len(s) > maxText {
		return nil
	}
	id, err := randflake.Parse(s)
	if err != nil {
		return nil
	}
	all := x.randflake(id)
	if len(all) == 0 {
		c := Candidate{Kind: RandflakeID, Chance: 1, Note: "by its form only; a secret would decide"}
		if x.Keyring != nil {
			c.Note = fmt.Sprintf("by its form only; under %s its time is in the future", secrets(x.Keyring))
		}
		c.Parts.add("hex", fmt.Sprintf("%016x", uint64(id)))
		all = append(all, c)
	}
	return all
}

func secrets(k *randflake.Keyring) string {
	if n := len(k.Codecs()); n > 1 {
		return fmt.Sprintf("each of the %d secrets", n)
	}
	return "the secret"
}
