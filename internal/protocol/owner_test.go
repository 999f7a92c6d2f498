package protocol

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestCheckOwner(t *testing.T) {
	for text, good := range map[string]bool{
		"": true, "web-7/12/2026-11-21T10:00:00Z": true, "größe 7": true,
		strings.Repeat("a", maxOwner): true, strings.Repeat("a", maxOwner+1): false,
		strings.Repeat("ä", maxOwner/2): true, strings.Repeat("ä", maxOwner/2+1): false,
		"a\nb": false, "a\x00": false, "\xff": false, "a\u200bb": false,
	} {
		if err := CheckOwner(text); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestOwner(t *testing.T) {
	text := Owner()
	parts := strings.Split(text, "/")
	if len(parts) != 3 || parts[1] != strconv.Itoa(os.Getpid()) || CheckOwner(text) != nil {
		t.Errorf("%q, %v", text, CheckOwner(text))
	}
	if text != Owner() {
		t.Error("two calls return different names")
	}
}

// For any host the result is a text that CheckOwner accepts, with as much of the host as fits.
func TestHosts(t *testing.T) {
	suffix := name("", nil)[len("unknown"):]
	room := maxOwner - len(suffix)
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
		{strings.Repeat("ä", maxOwner), nil, strings.Repeat("ä", room/2)},
	} {
		if got := name(tt.host, tt.err); got != tt.want+suffix || CheckOwner(got) != nil {
			t.Errorf("%q, %v: %q, want %q; %v", tt.host, tt.err, got, tt.want+suffix,
				CheckOwner(got))
		}
	}
}
