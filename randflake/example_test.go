package randflake_test

import (
	"fmt"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

// A codec encodes parts as an ID and decodes them again.
func ExampleCodec() {
	keyring, err := randflake.ParseKeyring("dffd6021bb2bd5b0af676290809ec3a5")
	if err != nil {
		panic(err)
	}
	codec := keyring.Codec()
	id, err := codec.Encode(randflake.Parts{Time: time.Unix(1733706297, 0), Node: 42, Sequence: 1})
	if err != nil {
		panic(err)
	}
	parts := codec.Decode(id)
	fmt.Println(id, parts.Time.Format(time.RFC3339), parts.Node, parts.Sequence)
	// Output: 3vgoe12ccb8gh 2024-12-09T01:04:57Z 42 1
}

// A generator generates IDs within a lease, here one node for an hour. Leases must not overlap;
// package lease ensures that.
func ExampleGenerator() {
	codec, err := randflake.NewCodec([]byte("16 secret bytes!"))
	if err != nil {
		panic(err)
	}
	start := time.Now().Add(-time.Second)
	lease := randflake.Lease{Node: 42, Nodes: 1, Start: start, End: start.Add(time.Hour)}
	g, err := randflake.NewGenerator(codec, lease)
	if err != nil {
		panic(err)
	}
	ids := make([]randflake.ID, 3)
	n, _, err := g.Fill(ids)
	fmt.Println(n, err, codec.Decode(ids[0]).Node, ids[0] != ids[1])
	// Output: 3 <nil> 42 true
}

// A fleet changes its secret: the first secret encrypts new IDs, both are accepted.
func ExampleParseKeyring() {
	keyring, err := randflake.ParseKeyring(`
# since spring
dffd6021bb2bd5b0af676290809ec3a5
# until spring
00112233445566778899aabbccddeeff
`)
	fmt.Println(len(keyring.Codecs()), err)
	fmt.Println(keyring) // secrets are not printed
	_, err = randflake.ParseKeyring("dffd6021bb2bd5b0")
	fmt.Println(err)
	// Output:
	// 2 <nil>
	// randflake.Keyring(hidden)
	// randflake: invalid keyring: line 1 has a secret of 16 characters, want 32 hex digits
}
