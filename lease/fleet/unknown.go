package fleet

import (
	"maps"
	"slices"
	"strings"
)

// known contains all variables: those of a process, of the command and of the vmclock device. Those
// of this repository's tests begin with TRACEFLAKETEST_. docs/configuration.md lists both.
var known = map[string]bool{
	storeVar: true, secretVar: true, ttlVar: true, strictVar: true,
	"TRACEFLAKE_CLICKHOUSE_DSN": true, "TRACEFLAKE_POSTGRES_DSN": true, "TRACEFLAKE_VMCLOCK": true,
}

// unknown returns the unknown variables in an environment that begin with TRACEFLAKE_, such as
// mistyped names, each with the known name that it resembles. It does not return values, which may
// be secrets.
func unknown(environ []string) (names []string) {
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "TRACEFLAKE_") && !known[name] && !isServiceLink(name) {
			if meant := nearest(name); meant != "" {
				name += " (did you mean " + meant + "?)"
			}
			names = append(names, name)
		}
	}
	return names
}

// nearest returns the known variable that begins with a name or is most similar to it, or "" if
// none is similar.
func nearest(name string) (best string) {
	least := 3 // letters: two that are exchanged count twice
	for _, candidate := range slices.Sorted(maps.Keys(known)) {
		if name != "TRACEFLAKE_" && strings.HasPrefix(candidate, name) {
			return candidate
		}
		if d := distance(name, candidate); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance returns how many letters must be inserted, deleted or replaced to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := before
			if a[i] != b[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// isServiceLink reports whether Kubernetes sets the variable in each pod for a Service whose name
// begins with traceflake, such as TRACEFLAKE_SERVICE_HOST and TRACEFLAKE_PORT_80_TCP.
func isServiceLink(name string) bool {
	return strings.Contains(name, "_SERVICE_") || strings.Contains(name, "_PORT")
}
