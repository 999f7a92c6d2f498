package traceid_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// A fleet changes its secret: IDs of the old and of the new secret are decoded while both are
// accepted.
func TestInspect(t *testing.T) {
	both := newKeyring(t, fleetSecret, lastSecret)
	parts := randflake.Parts{Time: noon.Truncate(time.Second), Node: 42, Sequence: 1}
	for _, c := range []struct {
		maker   string
		accepts *randflake.Keyring
		secret  int
	}{
		{fleetSecret, both, 0}, {lastSecret, both, 1}, {anotherSecret, both, -1}, {lastSecret, nil,
			-1},
		{lastSecret, new(randflake.Keyring), -1},
	} {
		id := assemble(t, newKeyring(t, c.maker), noon, noon)
		want := traceid.Info{Time: noon, Sequence: 5, Secret: c.secret}
		if c.secret >= 0 {
			want.Parts, want.Agree = parts, true
		} else if k := c.accepts.Codec(); k != nil {
			want.Parts = k.Decode(traceid.Low(id))
		}
		if got := traceid.Inspect(c.accepts, id); got != want {
			t.Errorf("generated under %s: got  %+v\nwant %+v", c.maker, got, want)
		}
	}
}

// Info has the same names in JSON as in a log record. A 64-bit ID has no time.
func TestInfoInLogs(t *testing.T) {
	const want = `{"time":"2026-03-14T12:00:00.5Z","sequence":5,` +
		`"parts":{"time":"2026-03-14T12:00:00Z","node":42,"sequence":1},"agree":true,"secret":0}`
	k := newKeyring(t, fleetSecret)
	info := traceid.Inspect(k, assemble(t, k, noon, noon))
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("", "id", info)
	text, err := json.Marshal(info)
	var fields, logged map[string]any
	err = errors.Join(err, json.Unmarshal(text, &fields))
	if _, id, ok := strings.Cut(strings.TrimSuffix(log.String(), "}\n"), `"id":`); ok {
		err = errors.Join(err, json.Unmarshal([]byte(id), &logged))
	}
	if err != nil || string(text) != want || !reflect.DeepEqual(fields, logged) {
		t.Errorf("%s, logged %s, want %s; %v", text, log.String(), want, err)
	}
	if text, err := json.Marshal(traceid.Inspect(nil, trace.TraceID{8: 1})); err != nil ||
		string(text) != `{"sequence":0,"agree":false,"secret":-1}` {
		t.Errorf("64 bits: %s, %v", text, err)
	}
}
