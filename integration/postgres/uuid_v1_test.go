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

const micros = "2006-01-02 15:04:05.000000"

// timeOfTicks returns the time, truncated to the microsecond.
func timeOfTicks(ticks int64) time.Time {
	ticks = ticks/10*10 - ticksAtUnixEpoch
	return time.Unix(ticks/10_000_000, 0).Add(time.Duration(ticks%10_000_000) * 100).UTC()
}

// v1 encodes the ticks in the fields of RFC 9562.
func v1(ticks int64, clockSequence int, node uint64) string {
	return fmt.Sprintf("%08x-%04x-1%03x-%04x-%012x", ticks&(1<<32-1), ticks>>32&(1<<16-1), ticks>>48, 1<<15|clockSequence, node)
}

func TestUUIDv1Time(t *testing.T) {
	db := functions(t)
	var ids []string
	for _, ticks := range []int64{0, 1, 9, 10, 11, 9_999_999, 10_000_000, 1<<32 - 1, 1 << 32, 1<<48 - 1, 1 << 48, ticksAtUnixEpoch - 1,
		ticksAtUnixEpoch, ticksAtUnixEpoch + 1, 1<<56 + 1, 1<<59 + 12345679, 1<<60 - 11, 1<<60 - 2, 1<<60 - 1} {
		ids = append(ids, v1(ticks, 0, 0), v1(ticks, 1<<14-1, 1<<48-1))
	}
	r := rand.New(rand.NewPCG(5, 6))
	for range 1000 {
		ids = append(ids, v1(r.Int64N(1<<60), r.IntN(1<<14), r.Uint64()>>16))
	}
	db.same("to_char(timezone('UTC', uuid_v1_time(v::uuid)), 'YYYY-MM-DD HH24:MI:SS.US')", ids, func(i int) string {
		return timeOfTicks(int64(uuid.MustParse(ids[i]).Time())).Format(micros)
	})

	others := []string{uuid.Nil.String(), uuid.Max.String()}
	for version := range 16 {
		for variant := range 16 {
			if version != 1 || variant < 8 || variant > 11 {
				others = append(others, fmt.Sprintf("a0b1c2d3-e4f5-%x234-%x567-89abcdef0123", version, variant))
			}
		}
	}
	db.same("coalesce(uuid_v1_time(v::uuid)::text, 'NULL')", others, func(int) string { return "NULL" })
}

func TestUUIDv1At(t *testing.T) {
	db := functions(t)
	r := rand.New(rand.NewPCG(7, 8))
	var arguments, want []string
	add := func(at string, clockSequence int, node uint64, id string) {
		arguments = append(arguments, fmt.Sprintf("('%s'::timestamptz, %d, '%012x'::macaddr)", at, clockSequence, node))
		want = append(want, id)
	}
	const last = (1<<60 - 1) / 10 * 10
	ticks := []int64{0, 10, 9_999_990, 10_000_000, 599_999_990, 600_000_000, ticksAtUnixEpoch - 10, ticksAtUnixEpoch, last - 10, last}
	for range 200 {
		ticks = append(ticks, r.Int64N(1<<60)/10*10)
	}
	for i, ticks := range ticks {
		node, at := r.Uint64()>>16, timeOfTicks(ticks).Format(micros+"Z07:00")
		clockSequence := []int{0, 1, 255, 256, 1<<14 - 1}[i%5]
		add(at, clockSequence, node, v1(ticks, clockSequence, node))
		add(at, []int{-1, 1 << 14, -1 << 31, 1<<31 - 1, 1 << 15}[i%5], node, "NULL")
	}
	for _, at := range []string{"infinity", "-infinity", "1582-10-14 23:59:59.999999+00", "5236-03-31 21:21:00.684698+00", "4714-11-24 00:00:00+00 BC"} {
		add(at, 1, 1, "NULL")
	}
	for i, arguments := range arguments {
		db.want(want[i], "SELECT uuid_v1_at"+arguments)
	}
}
