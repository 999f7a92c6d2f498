package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"
)

// google/uuid's Time is in units of 100 ns since 1582-10-15.
const ticksAtUnixEpoch = 12219292800 * 10_000_000

// timeOfTicks returns the time, truncated to the microsecond.
func timeOfTicks(ticks int64) time.Time {
	ticks = ticks/10*10 - ticksAtUnixEpoch
	return time.Unix(ticks/10_000_000, 0).Add(time.Duration(ticks%10_000_000) * 100).UTC()
}

// v1 encodes the ticks in the fields of RFC 9562.
func v1(ticks int64, clockSequence int, node uint64) string {
	return fmt.Sprintf("%08x-%04x-1%03x-%04x-%012x", ticks&(1<<32-1), ticks>>32&(1<<16-1), ticks>>48, 1<<15|clockSequence, node)
}

// The functions agree with google/uuid and with RFC 9562, there and back.
func TestUUIDv1(t *testing.T) {
	db := functions(t)
	ticks := []int64{0, 1, 9, 10, 11, 9_999_999, 10_000_000, 599_999_990, 600_000_000, 1<<32 - 1, 1 << 32, 1<<48 - 1, 1 << 48, ticksAtUnixEpoch - 1,
		ticksAtUnixEpoch, ticksAtUnixEpoch + 1, 1<<56 + 1, 1<<59 + 12345679, 1<<60 - 11, 1<<60 - 2, 1<<60 - 1}
	r := rand.New(rand.NewPCG(5, 6))
	for range 1000 {
		ticks = append(ticks, r.Int64N(1<<60))
	}
	var ids, want []string
	for i, ticks := range ticks {
		for _, clockSequence := range []int{0, 1<<14 - 1, []int{1, 255, 256}[i%3]} {
			node := r.Uint64() >> 16
			id := v1(ticks, clockSequence, node)
			ids = append(ids, id)
			want = append(want, timeOfTicks(int64(uuid.MustParse(id).Time())).Format("2006-01-02 15:04:05.000000 ")+v1(ticks/10*10, clockSequence, node))
		}
	}
	db.same("to_char(timezone('UTC', uuid_v1_time(v::uuid)), 'YYYY-MM-DD HH24:MI:SS.US ') "+
		"|| uuid_v1_at(uuid_v1_time(v::uuid), ('x' || substr(v, 20, 4))::bit(16)::int & 16383, substr(v, 25)::macaddr)", ids, func(i int) string { return want[i] })

	null := func(int) string { return "NULL" }
	others := []string{uuid.Nil.String(), uuid.Max.String()}
	for version := range 16 {
		for variant := range 16 {
			if version != 1 || variant < 8 || variant > 11 {
				others = append(others, fmt.Sprintf("a0b1c2d3-e4f5-%x234-%x567-89abcdef0123", version, variant))
			}
		}
	}
	db.same("uuid_v1_time(v::uuid)", others, null)
	db.same("uuid_v1_at(now(), v::int, '0a:1b:2c:3d:4e:5f')", []string{"-1", "16384", "-2147483648", "2147483647", "32768"}, null)
	db.same("uuid_v1_at(v::timestamptz, 1, '0a:1b:2c:3d:4e:5f')", []string{"infinity", "-infinity", "1582-10-14 23:59:59.999999+00",
		"5236-03-31 21:21:00.684698+00", "4714-11-24 00:00:00+00 BC"}, null)
}
