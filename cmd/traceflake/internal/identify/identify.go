// Package identify finds the IDs in a line of text and lists the kinds that each may be, with the
// time and the other fields that it encodes. With a secret, those of traceflake are certain.
//
// The form of an ID rarely determines its kind: 32 hex digits may be anything. So there may be
// several candidates. The fewer random IDs look like a kind, the earlier it is listed.
package identify

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

// Candidate is one kind that an ID may be.
type Candidate struct {
	Kind string `json:"kind"`
	// Time is when the ID was generated, if it encodes that.
	Time  time.Time `json:"time,omitzero"`
	Parts Parts     `json:"parts,omitzero"`
	// Note is further information.
	Note string `json:"note,omitempty"`
	// FalsePositives is the fraction of random IDs of the same form that look like this
	// kind; 1 if the form is the only criterion.
	FalsePositives float64 `json:"false_positives"`
}

// Parts are the other fields that an ID encodes, and other ways to write it.
type Parts struct {
	Sequence     *uint32 `json:"sequence,omitempty"` // of a trace ID
	Second       string  `json:"second,omitempty"`   // this and the next three: of a Randflake ID
	Node         *uint32 `json:"node,omitempty"`
	NodeSequence *uint32 `json:"node_sequence,omitempty"`
	Secret       int     `json:"secret,omitempty"` // the secret that decodes it, from 1
	Halves       string  `json:"halves,omitempty"`
	Text         string  `json:"text,omitempty"`
	Hex          string  `json:"hex,omitempty"`
	XRayForm     string  `json:"X-Ray_form,omitempty"`
	DatadogHigh  string  `json:"_dd.p.tid,omitempty"`
	Low          string  `json:"low_64_bits,omitempty"` // as text: JSON readers may round such a number
	Lease        string  `json:"lease_now,omitempty"`   // for the caller: the lease that the node is in
}

// Identifier identifies IDs.
type Identifier struct {
	// Keyring decodes our IDs; without one only the clear half is decoded.
	Keyring *randflake.Keyring
	// Now limits which times are plausible.
	Now time.Time
}

// ErrUnknown is returned for text that does not have the form of an ID.
var ErrUnknown = errors.New("not an ID")

// ID returns the kinds that s may be, the most plausible first. The error wraps
// [ErrUnknown].
func (x Identifier) ID(s string) ([]Candidate, error) {
	var all []Candidate
	for _, form := range []func(Identifier, string) []Candidate{
		Identifier.hex128, Identifier.hex64, Identifier.uuid, Identifier.ulid, Identifier.xray, Identifier.decimal, Identifier.base32,
	} {
		all = append(all, form(x, s)...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrUnknown, complaint(s))
	}
	slices.SortStableFunc(all, func(a, b Candidate) int { return cmp.Compare(a.FalsePositives, b.FalsePositives) })
	const certain = 1e-6
	if all[0].FalsePositives < certain { // the others are coincidences
		all = all[:1]
	}
	return all, nil
}

// complaint returns why s is not an ID.
func complaint(s string) string {
	const shown = 60
	short := s
	if len(short) > shown {
		short = short[:shown] + "…"
	}
	switch {
	case s == "":
		return "it is empty"
	case strings.Trim(s, "0-") == "":
		return fmt.Sprintf("%q is all zeros, which is not a valid ID", short)
	case isHex(s):
		return fmt.Sprintf("%q has %d hex digits; a trace ID has 32, a span ID or a short trace ID 16", short, len(s))
	}
	return fmt.Sprintf("%q does not look like an ID", short)
}

func isHex(s string) bool {
	return s != "" && strings.Trim(s, "0123456789abcdefABCDEF") == ""
}
