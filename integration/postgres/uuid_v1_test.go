package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
)

// google/uuid's Time is in units of 100 ns since 1582-10-15.
const ticksAtUnixEpoch = 12219292800 * 10_000_000

func timeOfTicks(ticks int64) time.Time {
	ticks -= ticksAtUnixEpoch
	return time.Unix(ticks/10_000_000, 0).Add(time.Duration(ticks%10_000_000/10*10) * 100).UTC()
}

// v1 encodes the ticks in the fields of RFC 9562.
func v1(ticks int64, variant uint16, rest uint64) string {
	return fmt.Sprintf("%08x-%04x-1%03x-%04x-%012x", ticks&(1<<32-1), ticks>>32&(1<<16-1), ticks>>48, variant<<14|uint16(rest&(1<<14-1)), rest>>16)
}

func TestUUIDv1Time(t *testing.T) {
	db := functions(t)
	var ids []string
	for _, ticks := range []int64{0, 1, 9, 10, 11, 9_999_999, 10_000_000, 1<<32 - 1, 1 << 32, 1<<48 - 1, 1 << 48, ticksAtUnixEpoch - 1, ticksAtUnixEpoch,
		ticksAtUnixEpoch + 1, ticksAtUnixEpoch + 946_684_800*10_000_000 - 1, 1<<56 + 1, 1<<59 + 12345679, 1<<60 - 11, 1<<60 - 2, 1<<60 - 1} {
		ids = append(ids, v1(ticks, 2, 0), v1(ticks, 2, 1<<64-1))
	}
	r := rand.New(rand.NewPCG(5, 6))
	for range random {
		ids = append(ids, v1(r.Int64N(1<<60), 2, r.Uint64()))
	}
	for range 100 {
		ids = append(ids, uuid.Must(uuid.NewUUID()).String())
	}
	same(t, "uuid_v1_time", ids, utc(each[*time.Time](db, "uuid_v1_time(v::uuid)", ids)), func(i int) *time.Time {
		id := uuid.MustParse(ids[i])
		if id.Version() != 1 || id.Variant() != uuid.RFC4122 {
			t.Fatalf("%s is not a UUID of version 1", id)
		}
		// Before 1970, timeOfTicks would round towards 1970, so truncate first.
		return new(timeOfTicks(int64(id.Time()) / 10 * 10))
	})

	var others []string
	for version := range 16 {
		for variant := range 16 {
			if version == 1 && variant >= 8 && variant < 12 {
				continue
			}
			others = append(others, fmt.Sprintf("a0b1c2d3-e4f5-%x234-%x567-89abcdef0123", version, variant))
		}
	}
	others = append(others, uuid.Nil.String(), uuid.Max.String(), uuid.Must(uuid.NewRandom()).String(), uuid.Must(uuid.NewV6()).String(),
		uuid.Must(uuid.NewV7()).String(), uuid.NewMD5(uuid.NameSpaceURL, []byte("x")).String())
	same(t, "uuid_v1_time", others, each[*time.Time](db, "uuid_v1_time(v::uuid)", others), null)
}

func TestUUIDv1At(t *testing.T) {
	db := functions(t)
	r := rand.New(rand.NewPCG(7, 8))
	var inputs, texts, nodes []string
	var sequences []int
	var want []int64 // ticks; -1: out of range
	add := func(ticks int64, text string, sequence int) {
		node := fmt.Sprintf("%012x", r.Uint64()>>16)
		want, texts, sequences, nodes = append(want, ticks), append(texts, text), append(sequences, sequence), append(nodes, node)
		inputs = append(inputs, fmt.Sprint(text, sequence, node))
	}
	at := func(ticks int64, sequence int) {
		text := timeOfTicks(ticks).Format("2006-01-02 15:04:05.999999Z07:00")
		if sequence < 0 || sequence >= 1<<14 {
			ticks = -1
		}
		add(ticks, text, sequence)
	}
	const last = (1<<60 - 1) / 10 * 10
	for _, ticks := range []int64{0, 10, 9_999_990, 10_000_000, 599_999_990, 600_000_000, ticksAtUnixEpoch - 10, ticksAtUnixEpoch, ticksAtUnixEpoch + 10, last - 10, last} {
		for _, sequence := range []int{0, 1, 255, 256, 16382, 16383, -1, 16384, -1 << 31, 1<<31 - 1, 1 << 16, 32768, -16384} {
			at(ticks, sequence)
		}
	}
	for range random {
		at(r.Int64N(1<<60)/10*10, r.IntN(16384))
		at(ticksAtUnixEpoch+r.Int64N(1<<54)/10*10, r.IntN(16384))
	}
	for _, text := range []string{"infinity", "-infinity", "1582-10-14 23:59:59.999999+00", "5236-03-31 21:21:00.684698+00", "294276-12-31 23:59:59+00", "4714-11-24 00:00:00+00 BC"} {
		add(-1, text, 1)
	}

	got := column[*string](db, `SELECT uuid_v1_at(t::timestamptz, sequence, node::macaddr)::text
		FROM unnest($1::text[], $2::int[], $3::text[]) WITH ORDINALITY AS i (t, sequence, node, n) ORDER BY n`, texts, sequences, nodes)
	same(t, "uuid_v1_at", inputs, got, func(i int) *string {
		if want[i] < 0 {
			return nil
		}
		node, err := strconv.ParseUint(nodes[i], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		return new(v1(want[i], 2, node<<16|uint64(sequences[i])))
	})
}
