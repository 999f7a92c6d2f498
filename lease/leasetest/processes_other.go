//go:build !unix

package leasetest

// Worker returns: stopping processes needs signals that this system lacks.
func Worker() {}
