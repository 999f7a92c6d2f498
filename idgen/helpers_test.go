package idgen

import (
	"runtime/debug"
	"slices"
)

// raceEnabled reports whether the race detector is on.
var raceEnabled = func() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}()
