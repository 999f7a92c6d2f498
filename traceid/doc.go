// Package traceid reads the trace IDs that package idgen generates: their time, their place in the
// millisecond, the bounds of a time range in a sorted table and, with the fleet's secrets, the
// node that generated them. It needs only OpenTelemetry's API, not its SDK.
//
//	trace ID, 16 bytes, big-endian
//	 127                         87 86              64 63                                     0
//	+------------------------------+------------------+----------------------------------------+
//	| 41 bits: ms since 2020       | 23 bits sequence |  Randflake ID (64 bits, encrypted)     |
//	+------------------------------+------------------+----------------------------------------+
//
// The first 64 bits are the clear half. [Time], [Min], [Max] and [NotBefore], the bound of a
// search, need no secret. Any ID of more than 64 bits decodes to some time. The other 64 bits are
// the low half. It is decoded with a [randflake.Keyring]: see [Inspect] and, for IDs that callers
// send, [Verifier].
package traceid
