// Package lease grants nodes to processes for a time, so that Randflake IDs
// are unique in a whole fleet, whatever clocks, pauses and stores do.
//
// A [Store] divides the nodes into blocks and grants each to one holder at a
// time. A [Keeper] holds one or more grants, renews them in the background and
// makes IDs with them; per ID it touches nothing but memory. Stores are in
// packages of their own: boltstore for the processes of one host, pgstore and
// etcdstore for a fleet.
//
// [Start] starts a Keeper. Package driver is for authors of stores; its Open
// opens a store by URL.
//
// # Why IDs are unique
//
// A lease is the sole right to a rectangle of nodes × seconds.
//
//	I1 For one block the granted seconds never overlap: a grant starts at or
//	   after the end of the last one. The store keeps {granted_until, holder,
//	   version} a block. Every write raises the version and, except for Raise,
//	   leaves a fresh nonce as the holder. granted_until only grows, except that
//	   a holder that has sealed its generator gives unused seconds back.
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
// made while there is no lease, collide only as 64-bit random numbers would.
//
// # Late messages
//
// Every request may be lost, late or repeated, and every answer lost. That is
// harmless because every write names itself by a nonce that is never drawn
// twice:
//
//   - A late Renew or Release compares the holder and the version that it was
//     sent for. It is written only if nothing was since then, and then the
//     Keeper still knows its nonce: it goes on only with a nonce that it
//     proposed for this very grant, and with the end that is stored.
//   - A late Acquire may win a block for a nonce that nobody waits for. The block
//     rests until the grant's end. If it grants the Keeper's own block anew, the
//     start has changed, and the Keeper drops its grant.
//   - A grant that a repeated Acquire found may have been found by a copy of the
//     process, too. It makes no IDs before the store has acknowledged a renewal.
//
// So after a call without an answer the Keeper reads the block, and what it
// shows decides; without that it goes on to the end of its grant.
//
// # Clones
//
// A copy of a running process holds the same grants (I2 is broken from outside).
// Where Linux tells of a restore, by vmclock, no ID is made of a grant that was
// asked for before it, and the grant is not given back. The next one is used once
// the store has acknowledged a renewal, since a kernel is told of the restore a
// moment later and may draw the same nonce in every copy until then. Elsewhere
// each renewal swaps the holder, so of two copies only one can renew. The other
// drops the grant with the store's first answer after that, reports [ErrCloned],
// and takes another. In this order, what remains there:
//
//   - From the clone to the loser's first answered call after the winner's
//     renewal, both make the same IDs: for about half a TTL, and to the grant's
//     end if the store does not answer the loser or the winner does not renew.
//   - If the nonce of a renewal was drawn before the clone and written after it,
//     that lasts until the next renewal of each.
//   - If one copy gives the grant back, the next holder may be granted seconds of
//     which the other copy has made IDs, or goes on making them until its renewal.
//   - If the store is raised meanwhile, both use up what they have.
//   - IDs that were reserved before the clone are handed out by both.
//   - If both draw the same random numbers, which kernels before 5.18 may give
//     them, they are never told apart.
//
// A shorter TTL ([WithTTL]) shortens the first three. All of this holds if the
// copies use one store. A store that is copied with the machine, as a bolt file on
// its disk is, grants the same nodes to both; see package boltstore. Detection by clocks is
// best effort: if the wall clock and the monotonic clock move apart by more than
// a second between two seconds of use, or two looks a minute apart, the machine
// was suspended or cloned or its clock stepped, and the grant is dropped.
// [Keeper.Generation] tells users of the IDs when to throw away those not used
// yet.
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
// remaining is how long IDs go on without the store: alert if it falls below a
// quarter of the TTL. The reason is clock_gap, clock_behind,
// store_contradiction (the store denies what it acknowledged, or a copy of this
// process gave it back), cloned (a copy of this process holds the same grant), restored (the machine was, from a
// snapshot) or taken (the block was granted anew). The operation is acquire,
// renew, get or release; error.type is missing if it went well, else
// no_free_node, clock_ahead, lost, block_size, schema_version, invalid_request,
// misconfigured, timeout or _OTHER. Counters are there from the start, at 0.
package lease
