package fleet

import (
	"slices"
	"strings"
)

// known contains all variables, sorted: those of a process, of the command and of the vmclock
// device. Those of this repository's tests begin with TRACEFLAKETEST_. docs/configuration.md lists
// both.
var known = []string{"TRACEFLAKE_CLICKHOUSE_DSN", secretVar, fileVar, storeVar, strictVar,
	ttlVar, "TRACEFLAKE_VMCLOCK"}

// unknown returns the unknown variables in an environment that begin with TRACEFLAKE_, such as
// mistyped names. It does not return values, which may be secrets. Kubernetes sets some in each pod
// for a Service whose name begins with traceflake, such as TRACEFLAKE_SERVICE_HOST and
// TRACEFLAKE_PORT_80_TCP.
func unknown(environ []string) (names []string) {
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		service := strings.Contains(name, "_SERVICE_") || strings.Contains(name, "_PORT")
		if strings.HasPrefix(name, "TRACEFLAKE_") && !service && !slices.Contains(known, name) {
			names = append(names, name)
		}
	}
	return names
}
