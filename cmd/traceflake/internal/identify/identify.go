// Package identify reads IDs as text: the kinds that each may be, with the time and the parts that
// it encodes. Package traceid tells the kinds of trace IDs apart; with a secret, ours are certain.
//
// The form of an ID rarely determines its kind: 32 hex digits may be anything. So there may be
// several candidates; the less likely a random ID looks like a kind, the earlier the kind is
// listed.
package identify

import (
	"encoding/json"
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
	// Time is when the ID was made, if it encodes that.
	Time *time.Time `json:"time,omitempty"`
	// Parts are its other fields.
	Parts Parts `json:"parts,omitempty"`
	// Note is further information.
	Note string `json:"note,omitempty"`
	// Chance is the fraction of random IDs of the same form that look like this
	// kind; 1 if the form is the only criterion.
	Chance float64 `json:"chance"`
	// Node is the node of a Randflake ID that one of the secrets decodes.
	Node *uint32 `json:"-"`
}

// Parts are named values in the order in which the ID holds them.
type Parts []Part

// Part is one named value: a text, a number, or an encoding.TextMarshaler.
type Part struct {
	Name  string
	Value any
}

// MarshalJSON returns an object with underscores for the spaces in names.
func (p Parts) MarshalJSON() ([]byte, error) {
	object := make(map[string]any, len(p))
	for _, part := range p {
		object[strings.ReplaceAll(part.Name, " ", "_")] = part.Value
	}
	return json.Marshal(object)
}

func (p *Parts) add(name string, value any) {
	if *p == nil {
		*p = make(Parts, 0, 8) // no kind has more
	}
	*p = append(*p, Part{name, value})
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
	for _, form := range []func(string) []Candidate{
		x.hex128, x.hex64, x.uuid, x.ulid, x.xray, x.decimal, x.base32,
	} {
		all = append(all, form(s)...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrUnknown, complaint(s))
	}
	slices.SortStableFunc(all, func(a, b Candidate) int {
		switch {
		case a.Chance < b.Chance:
			return -1
		case a.Chance > b.Chance:
			return 1
		}
		return 0
	})
	// If one candidate is certain, the others are coincidences.
	for i, c := range all {
		if c.Chance < certain {
			return all[:i+1], nil
		}
	}
	return all, nil
}

// certain is the chance below which other candidates are not listed.
const certain = 1e-6

// complaint returns why s is not an ID.
func complaint(s string) string {
	short := s
	if len(short) > 60 {
		short = short[:60] + "…"
	}
	switch {
	case s == "":
		return "it is empty"
	case strings.Trim(s, "0-") == "":
		return fmt.Sprintf("%q is all zeros, which no trace or span may have", short)
	case isHex(s):
		return fmt.Sprintf("%q has %d hex digits; a trace ID has 32, a span ID or a short trace ID 16; was it truncated?", short, len(s))
	}
	return fmt.Sprintf("%q does not have the form of a known ID", short)
}

func isHex(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return s != ""
}

func isDigits(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != ""
}

// share returns the fraction of a time field's range that lies between from and
// now, or 0 if t is not between them: then the ID is not of that kind.
func (x Identifier) share(t, from time.Time, wholeYears float64) float64 {
	limit := x.Now.Add(clockSkew)
	if t.Before(from) || t.After(limit) {
		return 0
	}
	return limit.Sub(from).Hours() / (24 * 365.2425) / wholeYears
}

// clockSkew is how far the clock that dated an ID may be ahead of ours.
const clockSkew = time.Hour

func at(t time.Time) *time.Time {
	t = t.UTC()
	return &t
}
