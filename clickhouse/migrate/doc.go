// Package migrate turns an existing table of spans into the one of a
// [clickhouse.Schema], under the same name and with all of its spans: the
// exporter's table, or one derived from it such as ClickStack's, or a table of the
// other layout, or any of them into one on a cluster.
//
// Its tables, by their suffix:
//
//	(none)      the table; of the new layout since the exchange
//	_remaining  the rest of the old table
//	_moving     the current partition; created first and dropped last
//	_copy       its copy in the new layout
//	_old        the rows that have been copied, kept for the operator to drop
package migrate
