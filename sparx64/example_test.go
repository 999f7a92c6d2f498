package sparx64_test

import (
	"encoding/hex"
	"fmt"
	"math/bits"

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

// A run of numbers costs a fraction of as many single calls.
func ExampleCipher_EncryptRun() {
	c, err := sparx64.NewCipher(make([]byte, 16)) // a real key is random
	if err != nil {
		panic(err)
	}
	hidden := make([]uint64, 3)
	c.EncryptRun(hidden, 4711)
	for _, h := range hidden {
		number := bits.ReverseBytes64(c.DecryptUint64(bits.ReverseBytes64(h)))
		fmt.Println(number)
	}
	// Output:
	// 4711
	// 4712
	// 4713
}
