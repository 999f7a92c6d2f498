package identify

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/oklog/ulid/v2"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

const (
	kindTraceflake = "traceflake trace ID"
	kindUUIDv7     = "UUID v7"
	kindULID       = "ULID"
	kindXRay       = "X-Ray" // and others that begin with Unix seconds, such as Brave's
	kindDatadog    = "Datadog 128-bit"
	kindShort      = "64 bits" // B3, padded with zeros: it contains no time
	kindRandom     = "random 128 bits"
	kindUUIDv4     = "UUID v4"
	kindRandflake  = "Randflake ID" // our span IDs and low halves
)

var (
	// foreignFrom is when ULID, X-Ray and Brave's 128 bits appeared. UUIDv7 and Datadog's are
	// younger.
	foreignFrom = time.Date(2016, 1, 1, 0, 0, 0, 0, time.UTC)
	// oursFrom is the first time that our trace IDs encode.
	oursFrom = time.UnixMilli(traceid.EpochMillis)
)

const (
	// ahead is how far the clock that dated an ID may be ahead of ours.
	ahead = time.Hour
	// agreement is the share of random low halves that agree with a clear half: five seconds out
	// of 2^30.
	agreement = 5.0 / (1 << 30)
)

// kinds returns the kinds that id, whose high half is not zero, may be.
//
// Apart from a UUID's version, no bit shows what an ID is. A kind is listed if its time is
// plausible: from the year of the kind's first use to an hour after now. So several may be listed:
// a ULID of 2026, for example, may also be a traceflake ID of 2020.
func (x Identifier) kinds(id trace.TraceID) []Candidate {
	all := []Candidate{{Kind: kindRandom, FalsePositives: 1, Note: "W3C trace context or B3, from any tracer"}}
	// field adds a kind whose time is in a field of so many milliseconds if the time is plausible. Of
	// all IDs, marked have the other properties of the kind.
	field := func(c Candidate, from time.Time, millis, marked float64) {
		if limit := x.Now.Add(ahead); !c.Time.Before(from) && !c.Time.After(limit) {
			c.FalsePositives = marked * float64(limit.Sub(from).Milliseconds()) / millis
			if c.Kind == kindTraceflake {
				x.ours(&c, id)
			}
			all = append(all, c)
		}
	}
	high := binary.BigEndian.Uint64(id[:8])
	unixMillis, unixSeconds := time.UnixMilli(int64(high>>16)).UTC(), time.Unix(int64(high>>32), 0).UTC()
	field(Candidate{Kind: kindTraceflake, Time: traceid.Time(id)}, oursFrom, traceid.MaxMillis+1, 1)
	if id[6]>>4 == 7 && id[8]>>6 == 0b10 {
		field(Candidate{Kind: kindUUIDv7, Time: unixMillis}, foreignFrom, 1<<48, 1.0/64)
	}
	field(Candidate{Kind: kindULID, Time: unixMillis, Parts: Parts{{"text", ulid.ULID(id).String()}}, Note: "by its time only"}, foreignFrom, 1<<48, 1)
	if uint32(high) == 0 {
		field(Candidate{Kind: kindDatadog, Time: unixSeconds, Parts: Parts{
			{"_dd.p.tid", hex.EncodeToString(id[:8])},
			{"low 64 bits", strconv.FormatUint(binary.BigEndian.Uint64(id[8:]), 10)}, // text, because JSON readers may round the number
		}}, foreignFrom, 1000<<32, 0x1p-32)
	} else {
		field(Candidate{
			Kind: kindXRay, Time: unixSeconds, Parts: Parts{{"X-Ray form", fmt.Sprintf("1-%x-%x", id[:4], id[4:])}},
			Note: "by its time only; Brave's IDs begin with Unix seconds, too",
		}, foreignFrom, 1000<<32, 1)
	}
	return all
}

// ours adds to a candidate of our kind what the secrets reveal.
func (x Identifier) ours(c *Candidate, id trace.TraceID) {
	c.Parts = Parts{{"sequence", traceid.Sequence(id)}}
	if x.Keyring == nil {
		c.Note = "by its time only; a secret would decide"
		return
	}
	secrets := float64(len(x.Keyring.Codecs()))
	info := traceid.Inspect(x.Keyring, id)
	halves := "disagree"
	if info.Agree {
		c.FalsePositives *= agreement * secrets
		c.decoded(info.Parts, info.Secret, info.Parts.Time)
		halves = "agree"
	} else {
		c.Note = "the low half does not match these secrets and that time: it is from another secret, random or deterministic"
		for secret, codec := range x.Keyring.Codecs() {
			// NewTraceIDAt generates the low half later than the time of the clear half.
			parts := codec.Decode(info.Low)
			if share := x.share(parts, info.Time); share > 0 {
				c.FalsePositives *= min(1, share*secrets)
				c.decoded(parts, secret, parts.Time)
				c.Note = "if it is ours, it was given to an old record at " + parts.Time.Format(time.RFC3339)
				break
			}
		}
	}
	c.Parts = append(c.Parts, Part{"halves", halves})
}

// decoded adds the content of a Randflake ID; second, unless it is zero, is its time.
func (c *Candidate) decoded(p randflake.Parts, secret int, second time.Time) {
	if !second.IsZero() {
		c.Parts = append(c.Parts, Part{"second", second.Format(time.RFC3339)})
	}
	c.Node = &p.Node
	c.Parts = append(c.Parts, Part{"node", p.Node}, Part{"node sequence", p.Sequence}, Part{"secret", secret + 1})
}

// share returns the fraction of all 2^30 seconds that lies between from and now, or 0 if the ID's
// is not one of them: then it is not ours.
func (x Identifier) share(p randflake.Parts, from time.Time) float64 {
	limit := x.Now.Add(ahead)
	if epoch := time.Unix(randflake.Epoch, 0); from.Before(epoch) {
		from = epoch
	}
	if p.Time.Before(from) || p.Time.After(limit) {
		return 0
	}
	return limit.Sub(from).Seconds() / (1 << 30)
}

// randflake returns the content of id under each secret, if it is plausible.
func (x Identifier) randflake(id randflake.ID) (all []Candidate) {
	if x.Keyring == nil || id == 0 {
		return nil
	}
	for secret, codec := range x.Keyring.Codecs() {
		parts := codec.Decode(id)
		if share := x.share(parts, time.Time{}); share > 0 {
			c := Candidate{Kind: kindRandflake, Time: parts.Time.UTC(), FalsePositives: share, Note: "by its time only; 64 bits have no check"}
			c.decoded(parts, secret, time.Time{})
			c.Parts = append(c.Parts, Part{"text", id.String()})
			all = append(all, c)
		}
	}
	return all
}
