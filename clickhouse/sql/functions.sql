-- Functions on trace IDs as ClickHouse stores them: 32 lower-case hex digits.
-- Any other text gives NULL, never an error. ClickHouse evaluates them once for constants, so that
-- Timestamp >= traceIDTime('…') uses partitions and the sort key.
# create the functions on trace IDs
-- traceIDTime: the clear half's time, to the millisecond. Any ID has one, ours or not, except those
-- of 64 bits, whose clear half is zero.
CREATE OR REPLACE FUNCTION traceIDTime{{.OnCluster}} AS (id) ->
    if(match(id, '^[0-9a-f]{32}$') AND NOT startsWith(id, '0000000000000000'),
       fromUnixTimestamp64Milli(
           toInt64(bitShiftRight(reinterpretAsUInt64(reverse(unhex(substring(id, 1, 16)))), 23))
               + 1577836800000, 'UTC'),
       NULL);

-- traceIDSeq: the sequence number within the millisecond, 0 to 8388607.
CREATE OR REPLACE FUNCTION traceIDSeq{{.OnCluster}} AS (id) ->
    if(match(id, '^[0-9a-f]{32}$'),
       toUInt32(bitAnd(reinterpretAsUInt64(reverse(unhex(substring(id, 1, 16)))), 8388607)),
       NULL);

-- traceIDLow: the low half, encrypted, uniform over all UInt64. For sharding and sampling.
CREATE OR REPLACE FUNCTION traceIDLow{{.OnCluster}} AS (id) ->
    if(match(id, '^[0-9a-f]{32}$'),
       reinterpretAsUInt64(reverse(unhex(substring(id, 17, 16)))),
       NULL);

-- traceIDMin: the lowest ID of t's millisecond; t a DateTime, a DateTime64 or a text in UTC.
-- Clamped to 2020 and 2089.
CREATE OR REPLACE FUNCTION traceIDMin{{.OnCluster}} AS (t) ->
    if(isNull(t), NULL,
       concat(lower(hex(reverse(reinterpretAsFixedString(bitShiftLeft(toUInt64(least(greatest(
               toUnixTimestamp64Milli(toDateTime64(t, 3, 'UTC')) - 1577836800000,
               0), 2199023255551)), 23))))),
           '0000000000000000'));

-- traceIDMax: the highest ID of t's millisecond, an inclusive bound.
CREATE OR REPLACE FUNCTION traceIDMax{{.OnCluster}} AS (t) ->
    if(isNull(t), NULL,
       concat(lower(hex(reverse(reinterpretAsFixedString(bitOr(bitShiftLeft(toUInt64(least(greatest(
               toUnixTimestamp64Milli(toDateTime64(t, 3, 'UTC')) - 1577836800000,
               0), 2199023255551)), 23), 8388607))))),
           'ffffffffffffffff'));

-- traceIDIsOurs: 1 if the ID may be ours: its time lies in [now - max_age, now + skew]. The two are
-- intervals or seconds.
CREATE OR REPLACE FUNCTION traceIDIsOurs{{.OnCluster}} AS (id, now, max_age, skew) ->
    ifNull(traceIDTime(id) >= toDateTime64(now, 9, 'UTC') - max_age
           AND traceIDTime(id) <= toDateTime64(now, 9, 'UTC') + skew, 0);

-- traceIDAt: an ID for a record that has none in order: its time, a number to distinguish records
-- of one millisecond (its low 23 bits are used) and a low half, all of the caller's. NULL for a
-- time before 2020 or past 2089.
CREATE OR REPLACE FUNCTION traceIDAt{{.OnCluster}} AS (t, seq, low) ->
    if(ifNull(toUnixTimestamp64Milli(toDateTime64(t, 3, 'UTC')), 0)
           BETWEEN 1577836800000 AND 3776860055551,
       concat(lower(hex(reverse(reinterpretAsFixedString(greatest(bitOr(
           bitShiftLeft(
               toUInt64(toUnixTimestamp64Milli(toDateTime64(t, 3, 'UTC')) - 1577836800000), 23),
           bitAnd(toUInt64(seq), 8388607)), 1))))),
           lower(hex(reverse(reinterpretAsFixedString(toUInt64(low)))))),
       NULL)
