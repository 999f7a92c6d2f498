package lease

import (
	"errors"
	"strings"
	"testing"
)

// For any host the result is a text that stores accept, with as much of the host as fits.
func TestOwner(t *testing.T) {
	suffix := ownerOn("", nil)[len("unknown"):]
	room := MaxOwner - len(suffix)
	for _, tt := range []struct {
		host string
		err  error
		want string
	}{
		{"web-7", nil, "web-7"},
		{"", nil, "unknown"},
		{"web-7", errors.New("no name"), "unknown"},
		{"a\x00b\nc\xffd\u200b", nil, "abcd"},
		{strings.Repeat("a", room), nil, strings.Repeat("a", room)},
		{strings.Repeat("a", room+1), nil, strings.Repeat("a", room)},
		{strings.Repeat("ä", MaxOwner), nil, strings.Repeat("ä", room/2)},
	} {
		if got := ownerOn(tt.host, tt.err); got != tt.want+suffix {
			t.Errorf("%q, %v: %q, want %q", tt.host, tt.err, got, tt.want+suffix)
		}
	}
}
