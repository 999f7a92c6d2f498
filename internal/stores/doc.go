// Package stores has tests only: those of the stores of leases that need an
// engine, a driver or the conformance suite. A store's own module requires none
// of these.
package stores
