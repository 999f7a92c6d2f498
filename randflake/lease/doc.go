// Package lease grants nodes to processes for a time, so that Randflake IDs
// are unique in a whole fleet, whatever clocks, pauses and stores do.
//
// A [Store] divides the nodes into blocks and grants each to one holder at a
// time. A [Keeper] holds one or more grants, renews them in the background and
// makes IDs with them; per ID it touches nothing but memory. Stores are in
// packages of their own: boltstore for the processes of one host, pgstore and
// etcdstore for a fleet.
//
// # Why IDs are unique
//
// A lease is the sole right to a rectangle of nodes × seconds.
//
//	I1 For one block the granted seconds never overlap. The store keeps
//	   {granted_until, holder, version} a block; granted_until only grows, but
//	   for a holder that gives back what it has not used. See [Block].
//	I2 One grant feeds one generator in one process. It is never saved, copied
//	   or taken up again after a restart.
//	I3 Inside a generator the word of second, node and sequence only grows.
//	I4 A generator makes no ID outside its rectangle.
//	I5 Encryption under one secret is one-to-one.
//
// No clock appears in this. Clocks decide when an ID is made, not whether it
// is unique: a process that sleeps, is stopped, or whose clock is stepped can
// only be refused.
//
// It assumes a store that is linearizable and durable, and memory that is not
// cloned. It covers one secret: IDs under two secrets, and random ones that are
// made while there is no lease, meet as random 64-bit numbers do.
//
// # Clones and stepped clocks
//
// Before each new second a Keeper compares how far the wall clock and the
// monotonic clock have moved. More than a second apart means that the machine
// was suspended or cloned or its clock stepped: the grant is dropped, not given
// back, and another one taken. This is best effort. A clone that no clock
// betrays makes the same IDs as its original for the rest of the lease, so take
// the lease down before you clone a running machine. [Keeper.Generation] tells
// users of the IDs when to throw away those not used yet.
//
// # Metrics
//
// Of the meter github.com/traceflake/traceflake/randflake/lease:
//
//	name                        instrument      unit       attributes
//	traceflake.lease.remaining  gauge           s          -
//	traceflake.lease.blocks     up-down counter {block}    -
//	traceflake.lease.drops      counter         {grant}    traceflake.lease.drop.reason
//	traceflake.lease.requests   counter         {request}  traceflake.lease.operation, error.type
//
// remaining is how long IDs go on without the store: alert when it falls below
// a quarter of the TTL. The reason is clock_gap, clock_behind or
// store_contradiction. The operation is acquire, renew, get or release;
// error.type is missing when it went well, else no_free_node, clock_ahead,
// lost, block_size, schema_version, invalid_request, timeout or _OTHER.
package lease
