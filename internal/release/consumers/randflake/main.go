// A program that uses package randflake.
package main

import (
	"fmt"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

func main() {
	codec, err := randflake.NewCodec([]byte("sixteen bytes of"))
	if err != nil {
		panic(err)
	}
	id, err := codec.Encode(randflake.Parts{Time: time.Now(), Node: 7})
	if err != nil {
		panic(err)
	}
	fmt.Println(id, "was made by node", codec.Decode(id).Node)
}
