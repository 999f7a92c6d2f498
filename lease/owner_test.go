package lease

import (
	"strings"
	"testing"
)

// For any host the result is a text that stores accept, with as much of the host as fits.
func TestOwner(t *testing.T) {
	suffix := ownerOn("")[len("unknown"):]
	room := MaxOwner - len(suffix)
	for _, tt := range []struct {
		host string
		want string
	}{
		{"web-7", "web-7"},
		{"", "unknown"},
		{"a\x00b\nc\xffd\u200b", "abcd"},
		{strings.Repeat("a", room), strings.Repeat("a", room)},
		{strings.Repeat("a", room+1), strings.Repeat("a", room)},
		{strings.Repeat("ä", MaxOwner), strings.Repeat("ä", room/2)},
	} {
		if got := ownerOn(tt.host); got != tt.want+suffix {
			t.Errorf("%q: %q, want %q", tt.host, got, tt.want+suffix)
		}
	}
}
