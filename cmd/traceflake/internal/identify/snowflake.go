package identify

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

// Snowflake is the layout of a Snowflake ID: time, node and sequence, from the left, in the lowest
// of 64 bits.
type Snowflake struct {
	Epoch                            time.Time
	Unit                             time.Duration // of the time
	TimeBits, NodeBits, SequenceBits int
}

// Twitter is the original layout.
var Twitter = Snowflake{
	Epoch: time.UnixMilli(1288834974657), Unit: time.Millisecond, TimeBits: 41, NodeBits: 10, SequenceBits: 12,
}

// SetBits reads the three widths, as in "41,10,12".
func (f *Snowflake) SetBits(s string) error {
	var widths []int
	sum := 0
	for field := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || n < 0 || n > 64 {
			return fmt.Errorf("%q has a width that is not a number from 0 to 64", s)
		}
		widths = append(widths, n)
		sum += n
	}
	if len(widths) != 3 || widths[0] == 0 || sum > 64 {
		return fmt.Errorf("%q: want the widths of time, node and sequence, as in 41,10,12; at most 64 bits in all, at least one of them time", s)
	}
	f.TimeBits, f.NodeBits, f.SequenceBits = widths[0], widths[1], widths[2]
	return nil
}

// decimal reads a number of 64 bits, signed or not.
func (x Identifier) decimal(s string) []Candidate {
	if len(s) > len("-9223372036854775808") {
		return nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if strings.HasPrefix(s, "-") {
		var signed int64
		signed, err = strconv.ParseInt(s, 10, 64)
		n = uint64(signed)
	}
	if err != nil || n == 0 || !isDigits(strings.TrimPrefix(s, "-")) {
		return nil
	}
	all := x.randflake(randflake.ID(n))
	if c, ok := x.snowflake(n); ok {
		all = append(all, c)
	}
	return append(all, Candidate{Kind: "64 bits", Note: "in decimal, as Datadog and others write B3's trace and span IDs", Chance: 1})
}

func (x Identifier) snowflake(n uint64) (Candidate, bool) {
	f := x.Snowflake
	if f.TimeBits == 0 {
		f = Twitter
	}
	if bits.Len64(n) > f.TimeBits+f.NodeBits+f.SequenceBits {
		return Candidate{}, false
	}
	ticks := n >> (f.NodeBits + f.SequenceBits)
	// Convert in steps that cannot overflow a Duration.
	perSecond := uint64(time.Second / f.Unit)
	seconds := ticks / perSecond
	if seconds > 1<<36 {
		return Candidate{}, false
	}
	t := time.Unix(f.Epoch.Unix()+int64(seconds), int64(f.Epoch.Nanosecond())).Add(time.Duration(ticks%perSecond) * f.Unit)
	wholeYears := f.Unit.Hours() / (24 * 365.2425) * float64(uint64(1)<<(f.TimeBits-1)) * 2
	chance := x.share(t, f.Epoch, wholeYears)
	if chance == 0 {
		return Candidate{}, false
	}
	c := Candidate{Kind: "Snowflake", Time: at(t), Chance: min(chance, 1), Note: "if the epoch and the widths are right"}
	c.Parts.add("node", strconv.FormatUint(n>>f.SequenceBits&(1<<f.NodeBits-1), 10))
	c.Parts.add("sequence", strconv.FormatUint(n&(1<<f.SequenceBits-1), 10))
	return c, true
}
