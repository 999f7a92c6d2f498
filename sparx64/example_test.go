package sparx64_test

import (
	"encoding/hex"
	"fmt"

	"github.com/traceflake/traceflake/sparx64"
)

// The authors' test vector.
func ExampleNewCipher() {
	key, err := hex.DecodeString("00112233445566778899aabbccddeeff")
	if err != nil {
		panic(err)
	}
	c, err := sparx64.NewCipher(key)
	if err != nil {
		panic(err)
	}
	hidden := c.EncryptUint64(0x0123456789abcdef)
	fmt.Printf("%016x %016x\n", hidden, c.DecryptUint64(hidden))
	// Output: 2bbef15201f55f98 0123456789abcdef
}
