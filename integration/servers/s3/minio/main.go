// Command minio is MinIO, for tests. It is no part of what users get, and lies
// in a module of its own outside of go.work: its dependencies are many, and its
// license is the AGPL.
package main

import (
	"io"
	"os"

	minio "github.com/minio/minio/cmd"
)

func main() {
	// It ends with the process that started it, even if that is killed.
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	minio.Main(os.Args)
}
