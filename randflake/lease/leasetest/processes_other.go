//go:build !unix

package leasetest

// Worker returns: processes are stopped with signals that this system lacks.
func Worker() {}
