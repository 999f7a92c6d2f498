package owner

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for text, good := range map[string]bool{
		"": true, "web-7/12/2026-11-21T10:00:00Z": true, "größe 7": true,
		strings.Repeat("a", MaxLen): true, strings.Repeat("a", MaxLen+1): false,
		strings.Repeat("ä", MaxLen/2): true, strings.Repeat("ä", MaxLen/2+1): false,
		"a\nb": false, "a\x00": false, "\xff": false, "a\u200bb": false,
	} {
		if err := Check(text); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestDefault(t *testing.T) {
	text := Default()
	parts := strings.Split(text, "/")
	if len(parts) != 3 || parts[1] != strconv.Itoa(os.Getpid()) || Check(text) != nil {
		t.Errorf("%q, %v", text, Check(text))
	}
	if text != Default() {
		t.Error("two calls return different names")
	}
}

// For any host the result is a text that Check accepts, with as much of the host as fits.
func TestHosts(t *testing.T) {
	suffix := name("", nil)[len("unknown"):]
	room := MaxLen - len(suffix)
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
		{strings.Repeat("a", room-1) + "ä", nil, strings.Repeat("a", room-1)},
		{strings.Repeat("ä", MaxLen), nil, strings.Repeat("ä", room/2)},
	} {
		if got := name(tt.host, tt.err); got != tt.want+suffix || Check(got) != nil {
			t.Errorf("%q, %v: %q, want %q; %v", tt.host, tt.err, got, tt.want+suffix, Check(got))
		}
	}
}
