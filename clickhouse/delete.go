package clickhouse

import (
	"fmt"
	"time"
)

// Deletion deletes spans for good, in the partitions that have any of them.
type Deletion struct {
	// Partitions finds the partitions with such spans: one column, PartitionID.
	Partitions Query

	table, where string
}

// DeleteTraces returns the deletion of all spans of up to 3000 traces, whenever they
// began. It has no bounds on time: nothing may be left.
func DeleteTraces[ID ~[16]byte](s Schema, ids []ID) (Deletion, error) {
	if err := s.validate(); err != nil {
		return Deletion{}, err
	}
	if _, err := listed(ids); err != nil {
		return Deletion{}, err
	}
	return s.deletion("TraceId IN (" + quotedIDs(ids) + ")"), nil
}

// DeleteSpans returns the deletion of all spans that began in [from, to).
func (s Schema) DeleteSpans(from, to time.Time) (Deletion, error) {
	if _, err := s.between(from, to); err != nil {
		return Deletion{}, err
	}
	at := func(t time.Time) string { return "toDateTime64(" + quoteText(text(t)) + ", 9, 'UTC')" }
	return s.deletion("Timestamp >= " + at(from) + " AND Timestamp < " + at(to)), nil
}

func (s Schema) deletion(where string) Deletion {
	return Deletion{
		Partitions: Query{SQL: fmt.Sprintf("SELECT DISTINCT _partition_id AS PartitionID\nFROM %s\nWHERE %s\nORDER BY PartitionID", s.quoted(""), where)},
		table:      s.quoted(s.rows()) + s.onCluster(),
		where:      where,
	}
}

// Statements returns one statement for each of these partitions. Each rewrites only
// the parts that have such spans, and ends when the rewritten parts are in use on
// all replicas. ClickHouse removes the old parts after old_parts_lifetime, eight
// minutes by default. Spans that arrive later are not deleted.
func (d Deletion) Statements(partitions []string) []string {
	all := make([]string, len(partitions))
	for i, p := range partitions {
		all[i] = fmt.Sprintf("ALTER TABLE %s DELETE IN PARTITION ID %s WHERE %s SETTINGS mutations_sync = 2", d.table, quoteText(p), d.where)
	}
	return all
}
