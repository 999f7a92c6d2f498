package owner

import (
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
		t.Error("one process has two names")
	}
}
