package main

import (
	_ "embed" // the SQL
	"strings"

	"github.com/traceflake/traceflake/clickhouse"
)

var (
	//go:embed sql/collector.sql
	collectorTable string
	//go:embed sql/lookup.sql
	lookupTable string
)

// layout is a table, the kind of IDs in it and the way to query it.
type layout struct {
	Name, About string
	IDs         string
	create      func(table string) ([]string, error)
	ask         asker
	other       asker // a second way to ask, if not nil
	otherAbout  string
	main        bool // measured at every size
}

func serviceFirst(table string) ([]string, error) {
	return clickhouse.Schema{Table: table}.Statements()
}

func traceFirst(table string) ([]string, error) {
	return clickhouse.Schema{Table: table, Layout: clickhouse.TraceFirst}.Statements()
}

func collector(table string) ([]string, error) {
	return strings.Split(strings.ReplaceAll(collectorTable, "{table}", table), ";\n"), nil
}

func collectorWithLookup(table string) ([]string, error) {
	all, err := collector(table)
	return append(all, strings.Split(strings.ReplaceAll(lookupTable, "{table}", table), ";\n")...), err
}

// layouts are compared. The first is the state without this project, the next
// three are what it ships.
var layouts = []layout{
	{"collector", "the exporter's table and its lookup table", "random", collectorWithLookup, byLookup, byBloom, "the same, the bloom filter alone", true},
	{"overlay", "the exporter's table, the window from the ID", "ours", collector, bySchema(clickhouse.Overlay), nil, "", true},
	{"service", "sorted by four hours, service, trace and time", "ours", serviceFirst, bySchema(clickhouse.ServiceFirst), nil, "", true},
	{"trace", "sorted by hour, trace and time", "ours", traceFirst, bySchema(clickhouse.TraceFirst), nil, "", true},
	{"service", "with random IDs", "random", serviceFirst, withRandomIDs, nil, "", false},
}
