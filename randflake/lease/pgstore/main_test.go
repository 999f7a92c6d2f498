package pgstore_test

import (
	"flag"
	"os"
	"testing"
)

// A call here waits for a disk: fewer random sequences than in memory, unless
// the command line says otherwise.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "25"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
