package version

import (
	"runtime/debug"
	"testing"
)

func TestOf(t *testing.T) {
	user := debug.Module{Path: "example.com/shop", Version: "v3.0.0"}
	for _, c := range []struct {
		info *debug.BuildInfo
		want string
	}{
		{nil, "(devel)"},
		{&debug.BuildInfo{Main: user}, "(devel)"},
		{&debug.BuildInfo{Main: debug.Module{Path: module}}, "(devel)"},
		{&debug.BuildInfo{Main: debug.Module{Path: module, Version: "v0.2.0"}}, "v0.2.0"},
		{&debug.BuildInfo{Main: user, Deps: []*debug.Module{
			{Path: module + "/lease/pgstore", Version: "v0.4.0"}, {Path: module, Version: "v0.5.0"},
		}}, "v0.5.0"},
	} {
		if got := of(c.info); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	if Library() == "" {
		t.Error("no version")
	}
}
