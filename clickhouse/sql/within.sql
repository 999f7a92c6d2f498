-- The condition for spans of traces with the times of times.sql. The lookup table's times end in
-- 1970 and in 2106.
(Timestamp BETWEEN times.1 AND times.2 OR times.3
        OR Timestamp < toDateTime64(0, 0) OR Timestamp >= toDateTime64(4294967295, 0))
