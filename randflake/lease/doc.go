// Package lease grants nodes to processes for a time, so that Randflake IDs
// are unique in a whole fleet.
package lease
