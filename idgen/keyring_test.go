package idgen_test

import (
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/randflake"
)

// A fleet changes its secret: IDs of the old and of the new one both pass as
// long as both are accepted.
func TestKeyring(t *testing.T) {
	const older, newer, other = "00112233445566778899aabbccddeeff", "dffd6021bb2bd5b0af676290809ec3a5", "0123456789abcdef0123456789abcdef"
	parse := func(secrets ...string) *randflake.Keyring {
		k, err := randflake.ParseKeyring(strings.NewReader(strings.Join(secrets, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	for _, c := range []struct {
		name     string
		maker    *randflake.Keyring
		accepts  *randflake.Keyring
		secret   int
		verifies bool
	}{
		{"before the change", parse(older, newer), parse(older), 0, true},
		{"new secret accepted", parse(newer, older), parse(older, newer), 1, true},
		{"old secret accepted", parse(older, newer), parse(newer, older), 1, true},
		{"new secret makes", parse(newer, older), parse(newer, older), 0, true},
		{"old secret gone", parse(older), parse(newer), -1, false},
		{"another fleet's", parse(other), parse(newer, older), -1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := time.Now()
			source, err := randflake.NewGenerator(c.maker.Codec(),
				randflake.Lease{Node: 42, Nodes: 1, Start: now.Add(-time.Minute), End: now.Add(time.Hour)})
			if err != nil {
				t.Fatal(err)
			}
			id, _ := idgen.New(idgen.WithSource(source)).NewIDs(t.Context())
			info, secret := idgen.InspectKeyring(c.accepts, id)
			if secret != c.secret || info.Agree != (secret >= 0) {
				t.Errorf("secret %d, agree %v; want secret %d", secret, info.Agree, c.secret)
			}
			if secret >= 0 && info.Parts.Node != 42 {
				t.Errorf("node %d, want 42", info.Parts.Node)
			}
			if info.TraceID != id || info.Time != idgen.Time(id) {
				t.Errorf("info of another ID: %+v", info)
			}
			if got := idgen.NewVerifier(c.accepts.Codecs()).Verify(id); got != c.verifies {
				t.Errorf("verifies: %v, want %v", got, c.verifies)
			}
		})
	}
}
