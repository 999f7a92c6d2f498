package clickhouse

import "github.com/traceflake/traceflake/clickhouse/internal/ddl"

// The oldest ClickHouse for each schema, by its changelog. Tests run with 26.7.
const (
	MinVersion        = "26.7" // Owned: projections with settings of their own
	MinPlainVersion   = "25.4" // Owned and Plain: the setting default_compression_codec
	MinOverlayVersion = "24.3" // Overlay: the functions and the queries
)

// CheckVersion returns an error if a server, which gave version as SELECT
// version() does, is too old for the schema.
func (s Schema) CheckVersion(version string) error {
	least, tooOld := s.oldest()
	return ddl.CheckVersion(version, least, tooOld)
}

// oldest is the oldest server for the schema, and what to do with an older one.
func (s Schema) oldest() (version, tooOld string) {
	switch {
	case s.Layout == Overlay:
		return MinOverlayVersion, "the functions need " + MinOverlayVersion + " or newer"
	case s.Plain:
		return MinPlainVersion, "a table sorted by trace ID needs " + MinPlainVersion +
			" or newer; use the layout Overlay until you upgrade"
	}
	return MinVersion, "the table's projections need " + MinVersion +
		" or newer; set Plain, which needs " + MinPlainVersion + ", until you upgrade"
}
