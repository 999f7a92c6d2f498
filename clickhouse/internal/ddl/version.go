package ddl

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strconv"
)

var versionPrefix = regexp.MustCompile(`^(\d+)\.(\d+)`)

// CheckVersion returns an error if a server's version, as SELECT version()
// returns it, is older than least.
func CheckVersion(version, least string) error {
	have, ok := number(version)
	if !ok {
		return fmt.Errorf("clickhouse: %q is not a version of ClickHouse: give the result of SELECT version()", version)
	}
	if want, _ := number(least); have < want {
		return fmt.Errorf("clickhouse: the server is ClickHouse %s, which is too old: upgrade it to %s or newer", version, least)
	}
	return nil
}

// number is year*100 + release.
func number(version string) (int, bool) {
	parts := versionPrefix.FindStringSubmatch(version)
	if parts == nil {
		return 0, false
	}
	year, _ := strconv.Atoi(parts[1])
	release, _ := strconv.Atoi(parts[2])
	return year*100 + release, true
}

// VersionGuard is a statement that fails on a server older than least.
func VersionGuard(least string) string {
	want, _ := number(least)
	return fmt.Sprintf("SELECT throwIf(toUInt32(splitByChar('.', version())[1]) * 100 + toUInt32(splitByChar('.', version())[2]) < %d, %s)",
		want, QuoteText("traceflake: the server is too old: upgrade it to "+least+" or newer"))
}

// Version queries the server's version.
func Version(ctx context.Context, db *sql.DB) (version string, err error) {
	if err := db.QueryRowContext(ctx, "SELECT version()").Scan(&version); err != nil {
		return "", fmt.Errorf("clickhouse: query the server's version: %w", err)
	}
	return version, nil
}
