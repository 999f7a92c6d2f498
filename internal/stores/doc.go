// Package stores has tests only: those of the stores of leases that need an
// engine, a driver or the conformance suite. The stores' own modules do not require
// these.
package stores
