package identify

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Layout is the division of a Snowflake ID's 64 bits into fields, from high to low. One field is
// the time. The bits above the first field are zero.
type Layout struct {
	Kind   string
	Epoch  time.Time
	Unit   time.Duration // of the time
	Fields []Field
}

// Field is a field of a [Layout].
type Field struct {
	Name string
	Bits int
}

// Part is the content of a field.
type Part struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

const timeField = "time"

// presets are layouts with a name. Many systems copied Twitter's.
var presets = []struct{ name, kind, layout string }{
	{"twitter", "Snowflake (Twitter)", "1288834974657,time=41,machine=10,sequence=12"},
	{"leaf", "Leaf", "1288834974657,time=41,machine=10,sequence=12"},
	{"sonyflake", "Sonyflake", "1409529600000,time=39,sequence=8,machine=16,unit=10ms"},
	// Its epoch is a day of Beijing's time.
	{"uidgenerator", "UidGenerator", "1463673600000,time=28,machine=22,sequence=13,unit=1s"},
}

// LayoutHelp describes the text of a layout.
const LayoutHelp = `twitter, leaf, sonyflake, uidgenerator, or an epoch and fields from high to low:
2020-01-01,time=41,machine=10,sequence=12 (and unit=10ms, if it is not a millisecond)`

// ParseLayout reads a layout in the form of [LayoutHelp].
func ParseLayout(s string) (*Layout, error) {
	l := Layout{Kind: "Snowflake", Unit: time.Millisecond}
	for _, p := range presets {
		if s == p.name {
			l.Kind, s = p.kind, p.layout
		}
	}
	parts := strings.Split(s, ",")
	var err error
	if l.Epoch, err = parseEpoch(parts[0]); err != nil {
		return nil, fmt.Errorf("%.60q: the epoch is not a date, RFC 3339 or Unix milliseconds", s)
	}
	for _, part := range parts[1:] {
		if err := l.add(part); err != nil {
			return nil, err
		}
	}
	return &l, l.check()
}

func parseEpoch(s string) (time.Time, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return time.UnixMilli(n), nil
	}
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return t, nil
	}
	return time.Parse(time.RFC3339, s)
}

// add adds a field, or sets the unit.
func (l *Layout) add(part string) (err error) {
	name, value, _ := strings.Cut(part, "=")
	if name == "unit" {
		if l.Unit, err = time.ParseDuration(value); err != nil || l.Unit < time.Microsecond {
			return fmt.Errorf("%.60q: want a duration such as 10ms", part)
		}
		return nil
	}
	bits, err := strconv.Atoi(value)
	if err != nil || bits < 1 || bits > 64 || name == "" {
		return fmt.Errorf("%.60q: want a field and its bits, such as machine=10", part)
	}
	l.Fields = append(l.Fields, Field{name, bits})
	return nil
}

// check returns an error for fields that cannot be read.
func (l *Layout) check() error {
	bits, times := 0, 0
	for _, f := range l.Fields {
		bits += f.Bits
		if f.Name == timeField {
			times++
			if f.Bits > 53 {
				return errors.New("the time has at most 53 bits")
			}
		}
	}
	switch {
	case times != 1:
		return fmt.Errorf("the layout has %d fields named time, want one", times)
	case bits > 64:
		return fmt.Errorf("the fields have %d bits, more than 64", bits)
	}
	return nil
}

// read returns the time of an ID and its other fields. It fails if a bit above the fields is set,
// or if the time is out of RFC 3339's range.
func (l *Layout) read(id uint64) (at time.Time, parts []Part, ok bool) {
	for _, f := range slices.Backward(l.Fields) {
		value := id & (1<<f.Bits - 1)
		id >>= f.Bits
		if f.Name == timeField {
			at, ok = l.after(value)
			continue
		}
		parts = append(parts, Part{f.Name, strconv.FormatUint(value, 10)})
	}
	slices.Reverse(parts)
	return at, parts, ok && id == 0
}

// after returns the time of a number of units after the epoch, and whether RFC 3339 can express it.
func (l *Layout) after(units uint64) (at time.Time, ok bool) {
	const second, most = uint64(time.Second), 1 << 40
	high, low := bits.Mul64(units, uint64(l.Unit)) // nanoseconds
	if high >= second {
		return at, false
	}
	seconds, rest := bits.Div64(high, low, second)
	at = time.Unix(l.Epoch.Unix()+int64(min(seconds, most)), int64(l.Epoch.Nanosecond())).
		Add(time.Duration(rest)).UTC()
	return at, 0 <= at.Year() && at.Year() <= lastYear
}

// snowflakes returns the content of id as a Snowflake: in the chosen layout, otherwise, for an ID
// in decimal, in each known layout whose time is then plausible.
func (x Identifier) snowflakes(id uint64, isDecimal bool) (all []Identity) {
	if x.Snowflake != nil {
		if at, parts, ok := x.Snowflake.read(id); ok {
			all = append(all, Identity{Kind: x.Snowflake.Kind, Time: at, Parts: parts})
		}
		return all
	}
	if !isDecimal {
		return nil
	}
	for _, p := range presets {
		if p.name == "leaf" { // whose IDs are as Twitter's
			continue
		}
		l, err := ParseLayout(p.name)
		if err != nil {
			continue // no preset is invalid
		}
		if at, parts, ok := l.read(id); ok && x.plausible(at) {
			all = append(all,
				Identity{Kind: l.Kind, Time: at, Parts: parts, Note: "by its time only"})
		}
	}
	return all
}
