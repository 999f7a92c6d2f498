// A program that uses package sparx64.
package main

import (
	"fmt"

	"github.com/traceflake/traceflake/sparx64"
)

func main() {
	c, err := sparx64.NewCipher(make([]byte, 16))
	if err != nil {
		panic(err)
	}
	block := []byte("8 bytes.")
	c.Encrypt(block, block)
	c.Decrypt(block, block)
	fmt.Printf("decrypts to %q\n", block)
}
