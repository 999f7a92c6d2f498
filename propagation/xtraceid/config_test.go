package xtraceid_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.opentelemetry.io/contrib/propagators/b3"

	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/propagation/xtraceid"
)

// The characters of a token in RFC 9110, and the names of other formats. A valid name is used as
// given; another one is reported, and the default is used.
func TestHeaderNames(t *testing.T) {
	const token = "!#$%&'*+-.^_`|~0123456789" +
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	good := map[string]bool{
		"": false, "x-b3": true, "X-Request-Id": true, "X-Trace-ID": true, "Traceparent-2": true,
	}
	for c := range 0x100 {
		good["x"+string([]byte{byte(c)})] = strings.IndexByte(token, byte(c)) >= 0
	}
	for _, name := range contextHeaders {
		good[name] = name == xtraceid.DefaultHeader
	}
	for name, good := range good {
		errs := reportstest.Collect(t)
		fields := xtraceid.New(xtraceid.WithHeader(name)).Fields()
		reported := errors.Join(errs()...)
		want := name
		if !good {
			want = xtraceid.DefaultHeader
		}
		text := fmt.Sprint(reported)
		if fields[0] != want || (reported == nil) != good ||
			!good && !strings.Contains(text, strconv.Quote(name)) || strings.Contains(text, "\n") {
			t.Errorf("with the name %q, %q is used; reported %v", name, fields[0], reported)
		}
	}
}

// An unknown encoding is reported, and B3's separate headers are used.
func TestEncodings(t *testing.T) {
	several := []string{"x-b3-traceid", "x-b3-spanid", "x-b3-sampled", "x-b3-flags"}
	both := append([]string{"b3"}, several...)
	for _, c := range []struct {
		encoding b3.Encoding
		want     []string
		good     bool
	}{
		{b3.B3MultipleHeader, several, true},
		{b3.B3SingleHeader, []string{"b3"}, true},
		{b3.B3SingleHeader | b3.B3MultipleHeader, both, true},
		{b3.B3Unspecified, several, false},
		{1, several, false},
		{b3.B3SingleHeader | 8, several, false},
	} {
		errs := reportstest.Collect(t)
		fields := xtraceid.New(xtraceid.WithB3Encoding(c.encoding)).Fields()
		if !slices.Equal(fields[1:], c.want) || (len(errs()) == 0) != c.good {
			t.Errorf("encoding %d: %q, reported %v", c.encoding, fields, errs())
		}
	}
}
