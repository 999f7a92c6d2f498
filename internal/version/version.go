// Package version returns the version of this library in a program, for the meters of idgen and
// lease, which do not import each other.
package version

import (
	"runtime/debug"
	"sync"
)

const module = "github.com/traceflake/traceflake"

// Library returns the version of the root module, such as v0.1.0, or "(devel)" if the build has no
// version information.
var Library = sync.OnceValue(func() string {
	info, _ := debug.ReadBuildInfo()
	return of(info)
})

func of(info *debug.BuildInfo) string {
	const unknown = "(devel)"
	if info == nil {
		return unknown
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == module && m.Version != "" {
			return m.Version
		}
	}
	return unknown
}
