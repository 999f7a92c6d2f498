// A program that grants a block by the rule of all stores.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

func main() {
	fmt.Println(driver.AllNodes.Blocks(), "blocks")
	store := driver.NewMemory(driver.WithNodeRange(driver.NodeRange{Nodes: 64, BlockSize: 8}))
	request := lease.Request{Nonce: lease.NewNonce(), Now: time.Now(), TTL: time.Minute}
	grant, err := store.Acquire(context.Background(), request)
	fmt.Println(grant.Nodes, "nodes are leased,", err)
}
