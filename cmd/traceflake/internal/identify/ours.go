package identify

import (
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// RandflakeID is the kind of our span IDs and low halves.
const RandflakeID = "Randflake ID"

// agreement is the share of random low halves that agree with a clear half: five seconds out
// of 2^30.
const agreement = 5.0 / (1 << 30)

// ours returns a candidate of our kind with what the secrets reveal.
func (x Identifier) ours(c Candidate, id trace.TraceID) Candidate {
	c.Parts.Sequence = new(traceid.Sequence(id))
	if x.Keyring == nil {
		c.Note = "by its time only; a secret would decide"
		return c
	}
	secrets := float64(len(x.Keyring.Codecs()))
	info := traceid.Inspect(x.Keyring, id)
	if info.Agree {
		c.FalsePositives *= agreement * secrets
		c.decoded(info.Parts, info.Secret)
		c.Parts.Halves = "agree"
		return c
	}
	c.Parts.Halves = "disagree"
	c.Note = "the low half does not match these secrets and that time: it is from another secret, random or deterministic"
	for secret, codec := range x.Keyring.Codecs() {
		// NewTraceIDAt generates the low half later than the time of the clear half.
		parts := codec.Decode(info.Low)
		if share := x.share(parts, info.Time); share > 0 {
			c.FalsePositives *= min(1, share*secrets)
			c.decoded(parts, secret)
			c.Note = "if it is ours, it was given to an old record at " + parts.Time.Format(time.RFC3339)
			break
		}
	}
	return c
}

// decoded sets the content of a Randflake ID.
func (c *Candidate) decoded(p randflake.Parts, secret int) {
	c.Parts.Second = p.Time.Format(time.RFC3339)
	c.Parts.Node, c.Parts.NodeSequence = &p.Node, &p.Sequence
	c.Parts.Secret = secret + 1
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
			c := Candidate{Kind: RandflakeID, Time: parts.Time.UTC(), FalsePositives: share, Note: "by its time only; 64 bits have no check"}
			c.decoded(parts, secret)
			c.Parts.Second = "" // it is the time
			c.Parts.Text = id.String()
			all = append(all, c)
		}
	}
	return all
}

// base32 reads the text form of Randflake IDs. One ID in 500 000 has fewer than 10 digits, and so
// have most words; 64 bits have at most 13.
func (x Identifier) base32(s string) []Candidate {
	if len(s) < 10 || len(s) > 13 {
		return nil
	}
	id, err := randflake.Parse(s)
	if err != nil {
		return nil
	}
	if all := x.randflake(id); len(all) > 0 {
		return all
	}
	c := Candidate{Kind: RandflakeID, FalsePositives: 1, Note: "by its form only; a secret would decide"}
	if x.Keyring != nil {
		c.Note = "by its form only; under no secret is its time in the past"
	}
	c.Parts.Hex = fmt.Sprintf("%016x", uint64(id))
	return []Candidate{c}
}
