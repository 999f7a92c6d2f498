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

// A batch of blocks costs a fraction of as many single calls.
func ExampleCipher_EncryptUint64s() {
	c, err := sparx64.NewCipher(make([]byte, 16)) // a real key is random
	if err != nil {
		panic(err)
	}
	numbers := []uint64{1, 2, 3}
	hidden := make([]uint64, len(numbers))
	c.EncryptUint64s(hidden, numbers)
	for _, h := range hidden {
		fmt.Println(c.DecryptUint64(h))
	}
	// Output:
	// 1
	// 2
	// 3
}
