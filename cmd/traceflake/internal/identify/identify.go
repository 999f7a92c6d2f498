// Package identify finds the IDs in a line of text, and decodes them. It is apart from cli, which
// only prints its results.
//
// No bit marks the kind of an ID: 16 bytes may be anything. So an ID is read as each kind whose
// time is then plausible, and only a secret can confirm that it is ours.
package identify

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
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
	kindUUIDv7    = "UUID v7"
	kindULID      = "ULID"
	kindXRay      = "X-Ray" // and others that begin with Unix seconds, such as Brave's
	kindDatadog   = "Datadog"
	kindUUIDv4    = "UUID v4"
	kind128       = "128 bits"
	kind64        = "64 bits"
)

// foreignFrom is when ULID and X-Ray appeared. UUIDv7 and Datadog's 128 bits are younger.
var foreignFrom = time.Date(2016, 1, 1, 0, 0, 0, 0, time.UTC)

// ahead is how far the clock that dated an ID may be ahead of ours.
const ahead = time.Hour

// Identifier identifies IDs.
type Identifier struct {
	// Keyring decodes our IDs. If it is nil, only the clear half is decoded.
	Keyring *randflake.Keyring
	// Now limits which times are plausible.
	Now time.Time
	// Snowflake is the layout of another system's 64-bit IDs; nil means any.
	Snowflake *Layout
}

// ErrUnknown is returned for text that does not have the form of an ID.
var ErrUnknown = errors.New("not an ID")

// ID returns the kinds that s may be of: s is an ID in the forms of parse, of a tracer with a form
// of its own, or a Randflake ID in base 32. A trace ID may be of several kinds, and several secrets
// may decode 64 bits. The error wraps [ErrUnknown].
func (x Identifier) ID(s string) ([]Identity, error) {
	switch id, form := parse(s); form {
	case hex128:
		return x.bits128(s, id), nil
	case ulid:
		return []Identity{ulidText(id)}, nil
	case hex64, decimal64:
		return x.bits64(traceid.Low(id), form == decimal64), nil
	}
	if all := x.tracers(s); all != nil {
		return all, nil
	}
	if id, ok := base32Text(s); ok {
		return x.base32(id), nil
	}
	return nil, notAnID(s)
}

// bits128 identifies an ID that is written as s.
func (x Identifier) bits128(s string, id trace.TraceID) []Identity {
	if [8]byte(id[:8]) == [8]byte{} {
		all := x.bits64(traceid.Low(id), false)
		for i := range all {
			all[i].Note += "; padded to 128 bits with zeros"
		}
		return all
	}
	all := append(x.tracers(s), x.traceID(id)...)
	if isUUIDv4(s) && all[0].Halves != "agree" {
		all = append(all,
			Identity{Kind: kindUUIDv4, Note: "random, but for the version and variant"})
	}
	return all
}

// ulidText returns the identity of a ULID in its own text form.
func ulidText(id trace.TraceID) Identity {
	at := time.UnixMilli(int64(binary.BigEndian.Uint64(id[:8]) >> 16)).UTC()
	if at.Year() > lastYear {
		return Identity{Kind: kindULID, Text: id.String(), Note: "its time is past the year 9999"}
	}
	return Identity{Kind: kindULID, Time: at, Text: id.String()}
}

// lastYear is the last year in RFC 3339.
const lastYear = 9999

// base32 identifies a Randflake ID in base 32.
func (x Identifier) base32(id randflake.ID) []Identity {
	if all := x.randflake(id); len(all) > 0 {
		return all
	}
	why := "no secret decodes it to a time in the past"
	if x.Keyring == nil {
		why = "a secret would decide"
	}
	note := fmt.Sprintf("by its form only, in hex %016x; %s", uint64(id), why)
	return []Identity{{Kind: kindRandflake, Note: note}}
}

func isUUIDv4(s string) bool {
	return len(s) == 36 && s[8] == '-' && s[14] == '4' &&
		strings.ContainsRune("89abAB", rune(s[19]))
}

// traceID returns the kinds that an ID with a nonzero high half may be of, the likeliest first.
func (x Identifier) traceID(id trace.TraceID) (all []Identity) {
	ours := x.ours(id)
	if ours.Halves != "agree" {
		all = x.foreign(id)
	}
	switch old := ours.Time.Before(time.Unix(randflake.Epoch, 0)); {
	case x.plausible(ours.Time) && old: // only records from before this format have such times
		all = append(all, ours)
	case x.plausible(ours.Time):
		all = append([]Identity{ours}, all...)
	case all == nil:
		at := traceid.Time(id).Format(time.RFC3339)
		all = []Identity{{Kind: kind128, Note: "not ours: its time would be " + at}}
	}
	return all
}

// foreign returns the kinds of other systems whose time is plausible.
func (x Identifier) foreign(id trace.TraceID) (all []Identity) {
	high := binary.BigEndian.Uint64(id[:8])
	add := func(kind string, t time.Time) {
		if !t.Before(foreignFrom) && x.plausible(t) {
			all = append(all, Identity{Kind: kind, Time: t.UTC(), Note: "by its time only"})
		}
	}
	if millis := time.UnixMilli(int64(high >> 16)); id[6]>>4 == 7 && id[8]>>6 == 0b10 {
		add(kindUUIDv7, millis)
	} else {
		add(kindULID, millis)
	}
	if seconds := time.Unix(int64(high>>32), 0); uint32(high) == 0 {
		add(kindDatadog, seconds)
	} else {
		add(kindXRay, seconds)
	}
	return all
}

// ours returns the content of an ID, if it is ours.
func (x Identifier) ours(id trace.TraceID) Identity {
	info := traceid.Inspect(x.Keyring, id)
	found := Identity{Kind: kindTraceID, Time: info.Time, Sequence: &info.Sequence}
	switch {
	case x.Keyring == nil:
		found.Note = "by its time only; a secret would decide"
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
func (x Identifier) bits64(id randflake.ID, isDecimal bool) []Identity {
	foreign := x.snowflakes(uint64(id), isDecimal)
	if ours := x.randflake(id); len(ours) > 0 {
		return append(ours, foreign...)
	}
	if x.Snowflake != nil && foreign != nil {
		return foreign
	}
	note := "a B3 trace ID or a span ID from any tracer"
	if isDecimal {
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
				Text: id.String(), Note: "by its time only; 64 bits have no check",
			})
		}
	}
	return all
}

func (x Identifier) plausible(t time.Time) bool { return !t.After(x.Now.Add(ahead)) }

func decoded(p randflake.Parts, secret int) *Decoded {
	return &Decoded{Second: p.Time, Node: p.Node, NodeSequence: p.Sequence, Secret: secret + 1}
}
