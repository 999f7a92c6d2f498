// Package identify finds the IDs in a line of text and lists the kinds that each may be, with the
// time and the other fields that it encodes. With a secret, those of traceflake are certain.
//
// The form of an ID rarely determines its kind: 32 hex digits may be anything. So there may be
// several candidates. The fewer random IDs look like a kind, the earlier it is listed.
package identify

import (
	"bytes"
	"cmp"
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
	// Time is when the ID was generated, if it encodes that.
	Time  time.Time `json:"time,omitzero"`
	Parts Parts     `json:"parts,omitempty"`
	// Node is that of a Randflake ID, which is also among the parts.
	Node *uint32 `json:"-"`
	// Note is further information.
	Note string `json:"note,omitempty"`
	// FalsePositives is the fraction of random IDs of the same form that look like this
	// kind; 1 if the form is the only criterion.
	FalsePositives float64 `json:"false_positives"`
}

// Part is another field that an ID encodes, or another way to write it.
type Part struct {
	Name  string
	Value any
}

// Parts are an object in JSON, with underscores for the spaces in names.
type Parts []Part

// MarshalJSON returns the parts in their order.
func (p Parts) MarshalJSON() ([]byte, error) {
	var fields [][]byte
	for _, part := range p {
		value, err := json.Marshal(part.Value)
		if err != nil {
			return nil, err
		}
		fields = append(fields, fmt.Appendf(nil, "%q:%s", strings.ReplaceAll(part.Name, " ", "_"), value))
	}
	return fmt.Appendf(nil, "{%s}", bytes.Join(fields, []byte(","))), nil
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
	switch {
	case s == "":
		return "it is empty"
	case strings.Trim(s, "0-") == "":
		return fmt.Sprintf("%.60q is all zeros, which is not a valid ID", s)
	case isHex(s):
		return fmt.Sprintf("%.60q has %d hex digits; a trace ID has 32, a span ID or a short trace ID 16", s, len(s))
	}
	return fmt.Sprintf("%.60q does not look like an ID", s)
}

func isHex(s string) bool {
	return s != "" && strings.Trim(s, "0123456789abcdefABCDEF") == ""
}
