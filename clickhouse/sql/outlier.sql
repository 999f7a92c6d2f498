-- The first 8 digits of an ID are units of 512 ms since 2020, which is 1577836800000 ms since 1970.
-- An hour is 3600000 ms. From an hour before the ID's time to an hour after it, the left side is 2
-- hours to 0; before and after, it is larger, or negative and so large as an unsigned number.
toUInt64(((toInt64(byteSwap(reinterpretAsUInt32(unhex(substring(TraceId, 1, 8))))) * 512)
    + 1577840400000) - toUnixTimestamp64Milli(Timestamp)) > 7200000
