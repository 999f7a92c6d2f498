// Package identify finds the IDs in a line of text, and decodes them. It is apart from cli, which
// only prints its results.
//
// No bit marks the kind of an ID: 16 bytes may be anything. So an ID is read as each kind whose
// time is then plausible, and only a secret can confirm that it is ours.
package identify

import (
	"encoding/binary"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// Identity is a kind that an ID may be of, with the fields that the ID then contains.
type Identity struct {
	Kind     string    `json:"kind"`
	Time     time.Time `json:"time,omitzero"`
	Sequence *uint32   `json:"sequence,omitempty"`
	Halves   string    `json:"halves,omitempty"` // of a trace ID: agree or disagree
	*Decoded
	Parts []Part `json:"parts,omitempty"` // of foreign IDs
	Text  string `json:"text,omitempty"`  // a Randflake ID in base 32, a ULID in hex
	Note  string `json:"note,omitempty"`
}

// Decoded holds the content of a Randflake ID under a secret.
type Decoded struct {
	Second       time.Time `json:"second"`
	Node         uint32    `json:"node"`
	NodeSequence uint32    `json:"node_sequence"`
	Secret       int       `json:"secret"` // its number, from 1
}

const (
	kindTraceID   = "traceflake trace ID"
	kindRandflake = "Randflake ID" // our span IDs and low halves
	kindULID      = "ULID"
	kind128       = "128 bits"
	kind64        = "64 bits"
)

const byTime = "by its time only"

// Identifier identifies IDs.
type Identifier struct {
	// Keyring decodes our IDs. If it is nil, only the clear half is decoded.
	Keyring *randflake.Keyring
	// Now limits which times are plausible.
	Now time.Time
}

// Found is an ID in a line, with a kind that it may be of.
type Found struct {
	Role string `json:"role,omitempty"` // trace, span or parent, if the line says so
	ID   string `json:"id"`
	Identity
	TraceID trace.TraceID `json:"-"` // zero for another role or notation
}

// Line returns the kinds that the IDs in a line may be of: the line is an ID, or a header, a log
// record or any text that contains some. The error wraps [ErrUnknown].
func (x Identifier) Line(line string) (all []Found, err error) {
	ids, err := find(line)
	for _, w := range ids {
		for _, identity := range x.identify(w) {
			all = append(all, Found{w.role, w.text, identity, w.traceID()})
		}
	}
	return all, err
}

// identify returns the kinds that an ID may be of, the likeliest first. Several secrets may decode
// 64 bits.
func (x Identifier) identify(w written) []Identity {
	switch {
	case w.notation == asText:
		return x.kinds(w, Identity{})
	case w.notation == asULID:
		return x.ulid(w)
	case is128(w.id):
		return x.bits128(w)
	}
	all := x.bits64(w)
	if w.notation == asHex128 || w.notation == asUUID {
		for i := range all {
			all[i].Note += "; padded to 128 bits with zeros"
		}
	}
	return all
}

// kinds returns the kinds of the table that an ID may be of. If it may be ours, it is as given.
func (x Identifier) kinds(w written, ours Identity) (all []Identity) {
	var unlikely []Identity
	for _, k := range table.Kinds {
		id := Identity{Kind: k.Kind, Note: byTime}
		ok := false
		switch high, low := binary.BigEndian.Uint64(w.id[:8]), uint64(traceid.Low(w.id)); {
		case k.Text != nil && w.notation == asText:
			id.Time, id.Parts, ok = k.readText(w.text)
		case w.padded && k.Kind == kindTraceID: // since May 2024 all of them have 32 digits
		case k.Width == 128 && high != 0, k.Width == 64 && high == 0 && w.role == "":
			id.Time, id.Parts, ok = k.read(high, low)
		}
		switch {
		case !ok, !k.plausible(id.Time, x.Now), k.Written != "" && k.Written != w.notation:
			continue
		case slices.ContainsFunc(all, func(a Identity) bool { return a.Time.Equal(id.Time) }):
			continue // the same time in a more special format
		case k.Kind == kindTraceID:
			id = ours
		case k.From == 0:
			id.Note = "random, but for the version and variant"
		}
		if id.Time.Before(k.LikelyFrom) { // only records from before the format have such times
			unlikely = append(unlikely, id)
		} else {
			all = append(all, id)
		}
	}
	return append(all, unlikely...)
}

// bits128 identifies an ID with a nonzero clear half.
func (x Identifier) bits128(w written) []Identity {
	ours := x.ours(w.id)
	if ours.Halves == "agree" {
		return []Identity{ours}
	}
	if all := x.kinds(w, ours); all != nil {
		return all
	}
	note := "not ours: its time would be " + traceid.Time(w.id).Format(time.RFC3339)
	if w.padded {
		note = "not ours: those have 32 digits"
	}
	return []Identity{{Kind: kind128, Note: note}}
}

// ulid returns the identity of a ULID in its own notation.
func (x Identifier) ulid(w written) []Identity {
	for _, id := range x.kinds(w, Identity{Kind: kindTraceID}) {
		if id.Kind == kindULID {
			id.Text, id.Note = w.id.String(), ""
			return []Identity{id}
		}
	}
	return []Identity{{Kind: kindULID, Text: w.id.String(), Note: "its time is not plausible"}}
}

// ours returns the content of an ID, if it is ours.
func (x Identifier) ours(id trace.TraceID) Identity {
	info := traceid.Inspect(x.Keyring, id)
	found := Identity{Kind: kindTraceID, Time: info.Time, Sequence: &info.Sequence}
	switch {
	case x.Keyring == nil:
		found.Note = byTime + "; a secret would decide"
	case info.Agree:
		found.Halves, found.Decoded = "agree", decoded(info.Parts, info.Secret)
	default:
		found.Halves = "disagree"
		found.Note = "the low half does not match these secrets and that time: " +
			"it is random or from another secret"
		for secret, codec := range x.Keyring.Codecs() {
			// NewTraceIDAt generates the low half later than the time of the clear half.
			parts := codec.Decode(traceid.Low(id))
			if parts.Time.Before(info.Time) || !x.plausible(parts.Time) {
				continue
			}
			found.Decoded = decoded(parts, secret)
			found.Note = "if it is ours, it was given to an old record at " +
				parts.Time.Format(time.RFC3339)
			break
		}
	}
	return found
}

// bits64 identifies 64 bits.
func (x Identifier) bits64(w written) []Identity {
	foreign := x.kinds(w, Identity{})
	if ours := x.randflake(traceid.Low(w.id)); len(ours) > 0 {
		return append(ours, foreign...)
	}
	note := "a B3 trace ID or a span ID from any tracer"
	if w.notation == asDecimal {
		note = "an ID from Datadog or from any other system"
	}
	if x.Keyring == nil {
		note += "; a secret would identify ours"
	}
	return append(foreign, Identity{Kind: kind64, Note: note})
}

// randflake returns the content of id under each secret that decodes it to a time in the past.
func (x Identifier) randflake(id randflake.ID) (all []Identity) {
	if x.Keyring == nil {
		return nil
	}
	for secret, codec := range x.Keyring.Codecs() {
		if parts := codec.Decode(id); x.plausible(parts.Time) {
			all = append(all, Identity{
				Kind: kindRandflake, Time: parts.Time, Decoded: decoded(parts, secret),
				Text: id.String(), Note: byTime + "; 64 bits have no check",
			})
		}
	}
	return all
}

func (x Identifier) plausible(t time.Time) bool { return !t.After(x.Now.Add(time.Hour)) }

func decoded(p randflake.Parts, secret int) *Decoded {
	return &Decoded{Second: p.Time, Node: p.Node, NodeSequence: p.Sequence, Secret: secret + 1}
}
