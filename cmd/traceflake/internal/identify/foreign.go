package identify

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"
)

const secondsYears = 136.1 // 2^32 s

// secondsFirst reads 128 bits that start with 32 bits of Unix seconds.
func (x Identifier) secondsFirst(id trace.TraceID) []Candidate {
	t := time.Unix(int64(binary.BigEndian.Uint32(id[:4])), 0)
	share := x.share(t, year(2012), secondsYears)
	if share == 0 {
		return nil
	}
	if binary.BigEndian.Uint32(id[4:8]) == 0 {
		c := Candidate{Kind: "Datadog 128-bit", Time: at(t), Chance: share / (1 << 32)}
		c.Parts.add("_dd.p.tid", hex.EncodeToString(id[:8]))
		// As text: JSON readers may round such a number.
		c.Parts.add("low 64 bits", strconv.FormatUint(binary.BigEndian.Uint64(id[8:]), 10))
		return []Candidate{c}
	}
	c := Candidate{Kind: "X-Ray or Brave 128-bit", Time: at(t), Chance: share, Note: "by its time only; both begin with Unix seconds"}
	c.Parts.add("X-Ray form", fmt.Sprintf("1-%x-%x", id[:4], id[4:]))
	return []Candidate{c}
}

// xray reads the form 1-SECONDS-RANDOM.
func (x Identifier) xray(s string) []Candidate {
	if len(s) != 35 || !strings.HasPrefix(s, "1-") || s[10] != '-' || !isHex(s[2:10]) || !isHex(s[11:]) {
		return nil
	}
	n, err := strconv.ParseUint(s[2:10], 16, 32)
	if err != nil {
		return nil
	}
	t := time.Unix(int64(n), 0)
	c := Candidate{Kind: "X-Ray", Time: at(t), Chance: x.share(t, year(2012), secondsYears)}
	if c.Chance == 0 {
		c.Chance, c.Note = 1, "by its form only; its time is not plausible"
	}
	c.Parts.add("random", s[11:])
	return []Candidate{c}
}

// sofatracer reads IPv4 address (8 hex digits), Unix milliseconds (13 digits),
// a sequence from 1000 to 9000 and a process ID.
func (x Identifier) sofatracer(s string) []Candidate {
	const ip, millis, sequence = 8, 13, 4
	if len(s) <= ip+millis+sequence || len(s) > ip+millis+sequence+10 || !isHex(s[:ip]) || !isDigits(s[ip:]) {
		return nil
	}
	ms, err := strconv.ParseInt(s[ip:ip+millis], 10, 64)
	if err != nil {
		return nil
	}
	number := s[ip+millis : ip+millis+sequence]
	t := time.UnixMilli(ms)
	share := x.share(t, year(2010), 316.9) // 10^13 ms
	if share == 0 || number < "1000" || number > "9000" {
		return nil
	}
	address, err := hex.DecodeString(s[:ip])
	if err != nil {
		return nil
	}
	c := Candidate{Kind: "SOFATracer", Time: at(t), Chance: share * 0.8}
	for range len(s) - ip {
		c.Chance *= 10.0 / 16 // the hex digits happen to be decimal
	}
	c.Parts.add("address", netip.AddrFrom4([4]byte(address)))
	c.Parts.add("sequence", number)
	c.Parts.add("process", s[ip+millis+sequence:])
	return []Candidate{c}
}

// skywalking reads PROCESS.THREAD.NUMBER, where NUMBER is Unix milliseconds
// and four digits of a sequence. PROCESS is 32 hex digits, or a number from
// agents before version 8.
func (x Identifier) skywalking(s string) []Candidate {
	if strings.IndexByte(s, '.') < 0 {
		return nil
	}
	parts := strings.Split(s, ".")
	if len(parts) != 3 || !isDigits(parts[1]) || !isDigits(parts[2]) || len(parts[2]) != 17 {
		return nil
	}
	if !isDigits(parts[0]) && (!isHex(parts[0]) || len(parts[0]) != 32) {
		return nil
	}
	ms, err := strconv.ParseInt(parts[2][:13], 10, 64)
	if err != nil {
		return nil
	}
	t := time.UnixMilli(ms)
	c := Candidate{Kind: "SkyWalking", Time: at(t), Chance: x.share(t, year(2010), 316.9)}
	if c.Chance == 0 {
		return nil
	}
	c.Parts.add("process", parts[0])
	c.Parts.add("thread", parts[1])
	c.Parts.add("sequence", parts[2][13:])
	return []Candidate{c}
}
