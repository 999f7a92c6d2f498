package clickhouse

import (
	"context"
	"database/sql"
	"strconv"
	"time"
)

// Status is the state of one of the tables of an [Adoption], or of any table of spans.
type Status struct {
	Table         string // with its database
	SortingKey    string
	New           bool // is the new one of an adoption that has not ended
	Engine        string
	TTL           string // "" keeps spans forever
	StoragePolicy string
	Rows, Bytes   uint64
	Ordered       float64   // share of the sampled IDs that have the time of their span
	Sampled       uint64    // spans of the newest partition, 100,000 at most
	Expires       time.Time // of the last span that is stored now; zero if it is kept forever
	Views         []string  // that read the table
}

// Status returns the state of the table and, during an adoption, of the other one.
func (a Adoption) Status(ctx context.Context, db *sql.DB) (all []Status, err error) {
	o, err := a.read(ctx, db)
	if err != nil {
		return nil, err
	}
	for _, suffix := range []string{"", other} {
		t := o.tables[suffix]
		if !t.exists() {
			continue
		}
		s := Status{Table: o.Database + "." + o.named(suffix), SortingKey: t.key, Engine: t.engine, TTL: clause(t.full, "TTL"), StoragePolicy: t.policy}
		s.New = (suffix == "") == o.newTable && o.begun
		rows, err := query(ctx, db, "SELECT toString(sum(rows)), toString(sum(bytes_on_disk)), toString(toUnixTimestamp(max(delete_ttl_info_max))), max(partition_id)\n"+
			"FROM system.parts WHERE active AND "+o.at("table", suffix))
		if err != nil {
			return nil, err
		}
		s.Rows, s.Bytes = number(rows[0][0]), number(rows[0][1])
		if last := number(rows[0][2]); last > 0 {
			s.Expires = time.Unix(int64(last), 0)
		}
		rows, err = query(ctx, db, "SELECT toString(count()), toString(countIf(abs(toUnixTimestamp64Milli(Timestamp) - 1577836800000 -\n"+
			"toInt64(bitShiftRight(reinterpretAsUInt64(reverse(unhex(substring(TraceId, 1, 16)))), 23))) < 86400000))\n"+
			"FROM (SELECT Timestamp, TraceId FROM "+o.quoted(suffix)+" WHERE _partition_id = "+quoteText(rows[0][3])+" LIMIT 100000)")
		if err != nil {
			return nil, err
		}
		if s.Sampled = number(rows[0][0]); s.Sampled > 0 {
			s.Ordered = float64(number(rows[0][1])) / float64(s.Sampled)
		}
		if s.Views, err = o.readers(ctx, suffix, "1"); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		err = o.noTable()
	}
	return all, err
}

func number(s string) uint64 {
	n, _ := strconv.ParseUint(s, 10, 64)
	return n
}
