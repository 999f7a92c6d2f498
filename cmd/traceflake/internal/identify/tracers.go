package identify

import (
	"encoding/hex"
	"net/netip"
	"regexp"
	"strconv"
	"time"
)

// tracers lists tracers with a text form of their own, whose parts are the groups of the
// expression. The time is in milliseconds, and not before since if the form alone is too general.
var tracers = []struct {
	kind  string
	form  *regexp.Regexp
	since time.Time
}{
	{
		// A process is a UUID, in old versions a number. Four digits of a sequence follow the time.
		kind: "SkyWalking",
		form: regexp.MustCompile(`^(?P<process>[0-9a-f]{32}|-?\d{1,10})\.(?P<thread>\d{1,19})\.` +
			`(?P<time>\d{10,14})(?P<sequence>\d{4})$`),
	},
	{
		// An IPv4 address in hex; a sequence from 1000 on.
		kind: "SOFATracer",
		form: regexp.MustCompile(`^(?P<address>[0-9a-f]{8})(?P<time>\d{13})` +
			`(?P<sequence>[1-9]\d{3})(?P<process>\d{1,7})$`),
		since: time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC),
	},
}

// tracers returns the kinds of s among trace IDs of tracers with a text form of their own.
func (x Identifier) tracers(s string) []Identity {
	for _, t := range tracers {
		match := t.form.FindStringSubmatch(s)
		if match == nil {
			continue
		}
		id := Identity{Kind: t.kind}
		for i, name := range t.form.SubexpNames()[1:] {
			text := match[i+1]
			switch name {
			case "time":
				n, _ := strconv.ParseInt(text, 10, 64) // at most 14 digits
				id.Time = time.UnixMilli(n).UTC()
				continue
			case "address":
				octets, _ := hex.DecodeString(text)
				ip, _ := netip.AddrFromSlice(octets)
				text = ip.String()
			}
			id.Parts = append(id.Parts, Part{name, text})
		}
		if t.since.IsZero() || !id.Time.Before(t.since) && x.plausible(id.Time) {
			return []Identity{id}
		}
	}
	return nil
}
