package setup

import (
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/otel"
)

// others are the variables that exist and that this package does not read: those of the command,
// of the vmclock device, and of this repository's tests. docs/configuration.md lists them all.
var others = []string{
	"TRACEFLAKE_CLICKHOUSE_DSN", "TRACEFLAKE_POSTGRES_DSN", "TRACEFLAKE_VMCLOCK", "TRACEFLAKE_ENGINES",
}

const secretVar = "TRACEFLAKE_SECRET" // does not exist

// reportUnknown reports variables of the environment that nothing reads, so that a mistyped one
// does not go unnoticed. Values are not shown: one may be a secret.
func reportUnknown(environ []string) {
	known := slices.Clone(others)
	for _, v := range variables {
		known = append(known, v.name)
	}
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		switch {
		case !strings.HasPrefix(name, "TRACEFLAKE_"), slices.Contains(known, name), isServiceLink(name):
		case name == secretVar:
			otel.Handle(fmt.Errorf("setup: %s is not read, so that no secret is in the environment; "+
				"write it to a file and set %s to the file's path", name, SecretFileVar))
		default:
			advice := "docs/configuration.md lists those that exist"
			if near := nearest(name, known); near != "" {
				advice = "did you mean " + near + "?"
			}
			otel.Handle(fmt.Errorf("setup: the variable %s is not known and has no effect; %s", name, advice))
		}
	}
}

// isServiceLink reports whether Kubernetes sets the variable in each pod for a Service whose name
// begins with traceflake, such as TRACEFLAKE_SERVICE_HOST and TRACEFLAKE_PORT_80_TCP.
func isServiceLink(name string) bool {
	return strings.Contains(name, "_SERVICE_") || strings.Contains(name, "_PORT")
}

// nearest returns the known name that differs in the fewest letters, at most two, or "".
func nearest(name string, known []string) (near string) {
	const tooFar = 3
	least := tooFar
	for _, k := range known {
		if d := distance(name, k); d < least {
			near, least = k, d
		}
	}
	return near
}

// distance is Levenshtein's: how many letters to insert, delete or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
