package identify

import (
	"encoding/hex"
	"net/netip"
	"regexp"
	"strconv"
	"time"
)

// tracers returns what s is as a trace ID of a tracer with a text form of its own.
func (x Identifier) tracers(s string) []Identity {
	if identity, ok := skyWalking(s); ok {
		return []Identity{identity}
	}
	if identity, ok := x.sofaTracer(s); ok {
		return []Identity{identity}
	}
	return nil
}

// A SkyWalking ID has a process (a UUID, in old versions a number), a thread, and milliseconds
// followed by four digits of a sequence.
var skyWalkingID = regexp.MustCompile(`^([0-9a-f]{32}|-?\d{1,10})\.(\d{1,19})\.(\d{10,14})(\d{4})$`)

func skyWalking(s string) (Identity, bool) {
	m := skyWalkingID.FindStringSubmatch(s)
	if m == nil {
		return Identity{}, false
	}
	return Identity{Kind: "SkyWalking", Time: unixMillis(m[3]),
		Parts: []Part{{"process", m[1]}, {"thread", m[2]}, {"sequence", m[4]}}}, true
}

// A SOFATracer ID has an IPv4 address in hex, milliseconds, a sequence from 1000 on, and a process.
var sofaTracerID = regexp.MustCompile(`^([0-9a-f]{8})(\d{13})([1-9]\d{3})(\d{1,7})$`)

func (x Identifier) sofaTracer(s string) (Identity, bool) {
	m := sofaTracerID.FindStringSubmatch(s)
	if m == nil {
		return Identity{}, false
	}
	at := unixMillis(m[2])
	if at.Before(sofaTracerFrom) || !x.plausible(at) {
		return Identity{}, false
	}
	address, _ := hex.DecodeString(m[1])
	ip, _ := netip.AddrFromSlice(address)
	return Identity{Kind: "SOFATracer", Time: at,
		Parts: []Part{{"address", ip.String()}, {"sequence", m[3]}, {"process", m[4]}}}, true
}

// sofaTracerFrom is before the first ID in this form.
var sofaTracerFrom = time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC)

func unixMillis(digits string) time.Time {
	n, _ := strconv.ParseInt(digits, 10, 64) // at most 14 digits
	return time.UnixMilli(n).UTC()
}
