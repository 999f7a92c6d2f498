package identify

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/gofrs/uuid/v5"
	"github.com/oklog/ulid/v2"
	"go.opentelemetry.io/otel/trace"
)

// uuid reads the dashed form, in which PostgreSQL prints any 128 bits.
func (x Identifier) uuid(s string) []Candidate {
	s = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(s, "urn:uuid:"), "{"), "}")
	if len(s) != 36 {
		return nil
	}
	id, err := uuid.FromString(s)
	if err != nil {
		return nil
	}
	return x.hex128(hex.EncodeToString(id[:]))
}

// uuidBits reads 128 bits as a UUID of RFC 9562. Six of the bits are version and variant.
func (x Identifier) uuidBits(raw trace.TraceID) []Candidate {
	id := uuid.UUID(raw)
	if id.Variant() != uuid.VariantRFC9562 {
		return nil
	}
	const mark = 1.0 / 64
	c := Candidate{Kind: fmt.Sprintf("UUID v%d", id.Version())}
	timed := func(ts uuid.Timestamp, err error, from time.Time, wholeYears float64) {
		if t, timeErr := ts.Time(); err == nil && timeErr == nil {
			c.Time, c.Chance = at(t), mark*x.share(t, from, wholeYears)
		}
	}
	switch id.Version() {
	case uuid.V1, uuid.V6:
		ts, err := uuid.TimestampFromV1(id)
		if id.Version() == uuid.V6 {
			ts, err = uuid.TimestampFromV6(id)
		}
		timed(ts, err, year(1998), 3653) // 2^60 times 100 ns
		c.Parts.add("clock sequence", uint32(binary.BigEndian.Uint16(id[8:])&0x3fff))
		c.Parts.add("node", net.HardwareAddr(id[10:]).String())
		if id[10]&1 == 1 {
			c.Note = "the node is random, not a network address"
		}
	case uuid.V7:
		ts, err := uuid.TimestampFromV7(id)
		timed(ts, err, year(2020), ulidYears)
	case uuid.V4:
		c.Chance, c.Note = mark, "random, without a time"
	default:
		if v := id.Version(); v == 0 || v > 8 {
			return nil
		}
		c.Chance, c.Note = mark, "without a time"
	}
	if c.Chance == 0 {
		return nil
	}
	return []Candidate{c}
}

const ulidYears = 8919.4 // 2^48 ms

// ulid reads the text form of ULIDs.
func (x Identifier) ulid(s string) []Candidate {
	if len(s) != ulid.EncodedSize {
		return nil
	}
	id, err := ulid.ParseStrict(s)
	if err != nil || id == (ulid.ULID{}) {
		return nil
	}
	t := ulid.Time(id.Time())
	c := Candidate{Kind: "ULID", Time: at(t), Chance: x.share(t, year(2010), ulidYears)}
	if c.Chance == 0 {
		c.Chance, c.Note = 1, "by its form only; its time is not plausible"
	}
	c.Parts.add("entropy", hex.EncodeToString(id.Entropy()))
	return []Candidate{c}
}

// ulidBits reads 128 bits as a ULID.
func (x Identifier) ulidBits(raw trace.TraceID) []Candidate {
	id := ulid.ULID(raw)
	t := ulid.Time(id.Time())
	chance := x.share(t, year(2010), ulidYears)
	if chance == 0 {
		return nil
	}
	c := Candidate{Kind: "ULID", Time: at(t), Chance: chance, Note: "in hex; by its time only"}
	c.Parts.add("text", id)
	return []Candidate{c}
}
