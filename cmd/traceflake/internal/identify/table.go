package identify

import (
	_ "embed" // the table
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// The table is shared with the page docs/inspect.html, and says itself what its parts mean.
//
//go:embed table.json
var tableJSON []byte

var table = readTable()

// known is the table.
type known struct {
	Roles struct{ Trace, Parent, Span pattern }
	// Rewritten are expressions, what replaces their matches, and texts: each match has one.
	Rewritten                                        [][]string
	Codes, Cut, Named, Anywhere, Short, High, Dashed pattern
	Tokens                                           []pattern
	Kinds                                            []*kind
	rewritten                                        []*regexp.Regexp
}

// pattern is an expression that ignores case.
type pattern struct{ *regexp.Regexp }

func (p *pattern) UnmarshalText(text []byte) (err error) {
	p.Regexp, err = regexp.Compile("(?i)" + string(text))
	return err
}

// kind is a format of IDs: bits, or a text of its own.
type kind struct {
	Kind   string
	Width  int // in bits; 0 for a text
	Fields []struct {
		Name  string
		Bits  uint
		Is    *uint64
		Shown bool
	}
	Written    string    // the only notation of the kind, if it is not ""
	Text       *pattern  // whose groups are the fields
	EpochMS    int64     `json:"epoch_ms"`
	UnitMS     int64     `json:"unit_ms"`
	From       int       // the first year of plausible times; 0 for a kind without times
	LikelyFrom time.Time `json:"likely_from"`
}

func readTable() (t known) {
	if err := json.Unmarshal(tableJSON, &t); err != nil {
		panic(err) // TestVectors would fail
	}
	for _, r := range t.Rewritten {
		t.rewritten = append(t.rewritten, regexp.MustCompile(r[0]))
	}
	return t
}

// Part is the content of a field.
type Part struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// read returns the time of an ID and its other fields. It fails if a field has another value than
// the kind requires.
func (k *kind) read(high, low uint64) (at time.Time, parts []Part, ok bool) {
	for _, f := range slices.Backward(k.Fields) {
		value := low
		if f.Bits < 64 {
			value &= 1<<f.Bits - 1
		}
		// Shifts by more than 63 bits give 0.
		high, low = high>>f.Bits, low>>f.Bits|high<<(64-f.Bits)|high>>(f.Bits-64)
		switch {
		case f.Is != nil && *f.Is != value:
			return at, nil, false
		case f.Name == "time":
			at = time.UnixMilli(k.EpochMS + int64(value)*k.UnitMS).UTC()
		case f.Shown, f.Is == nil && k.Width == 64:
			parts = append(parts, Part{f.Name, strconv.FormatUint(value, 10)})
		}
	}
	slices.Reverse(parts)
	return at, parts, true
}

// readText returns the content of an ID that is written in the kind's own text.
func (k *kind) readText(s string) (at time.Time, parts []Part, ok bool) {
	match := k.Text.FindStringSubmatch(s)
	if match == nil {
		return at, nil, false
	}
	for i, name := range k.Text.SubexpNames()[1:] {
		if name != "time" {
			parts = append(parts, Part{name, match[i+1]})
			continue
		}
		ms, _ := strconv.ParseInt(match[i+1], 10, 64) // at most 14 digits
		at = time.UnixMilli(ms).UTC()
	}
	return at, parts, true
}

// plausible reports whether IDs of the kind can have a time: not one in the future.
func (k *kind) plausible(t, now time.Time) bool {
	const ahead = time.Hour // the clock that dated an ID may be ahead of ours
	return k.From == 0 || t.Year() >= k.From && !t.After(now.Add(ahead))
}
