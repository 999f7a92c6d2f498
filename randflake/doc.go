// Package randflake generates Randflake IDs: 64-bit identifiers that are unique in a fleet and
// look random without the secret.
//
//	63                     34 33          17 16             0
//	+-------------------------+--------------+----------------+
//	| 30 bits: s since Epoch  | 17 bits node | 17 bits seq    |   encrypted with SPARX-64/128
//	+-------------------------+--------------+----------------+
//
// The format is that of gosuda.org/randflake; its known answers are in testdata. The raw word is
// written to the cipher's block in little-endian byte order and read back the same way. All values
// are unsigned, so IDs last until 2058-11-05T17:10:23Z.
//
// A [Generator] never leaves its [Lease] and never repeats an ID, whatever its clock does. So
// generators under one secret never generate the same ID if their leases do not overlap: package
// lease grants and renews such leases. IDs under two secrets collide only as 64-bit random numbers
// would.
//
// The cipher hides node, time and sequence, but does not authenticate: every 64-bit word decodes to
// some node, time and sequence.
package randflake
