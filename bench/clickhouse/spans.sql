-- Traces of 10 spans within five seconds, of {services} services with 8 names each; one trace in
-- 1000 lasts half an hour. A trace begins each {us} microseconds. One span in 50 has failed, with
-- an exception. Everything follows from the span's number.
SELECT
    t + toIntervalMicrosecond(
        intHash32(number) % if(trace % 1000 = 7, 1800000000, 5000000)) AS Timestamp,
    if(intHash32(trace * 7) % 100 < {random}, lower(hex(sipHash128(trace, 1))),
        assumeNotNull(traceIDAt(t, 0, sipHash64(trace, 1)))) AS TraceId,
    lower(hex(sipHash64(number, 3))) AS SpanId,
    if(number % 10 = 0, '', lower(hex(sipHash64(trace * 10, 3)))) AS ParentSpanId,
    concat('GET /api/', toString(intHash32(number * 31) % 8)) AS SpanName,
    'Server' AS SpanKind,
    concat('service-', toString((intHash32(trace) + number % 10) % {services})) AS ServiceName,
    map('service.name', ServiceName,
        'host.name', concat('node-', toString(intHash32(number * 17) % 40)),
        'k8s.pod.name', concat(ServiceName, '-', toString(intHash32(number * 13) % 6)),
        'service.version', '1.4.2') AS ResourceAttributes,
    map('http.route', SpanName,
        'user.id', toString(intHash32(trace * 3) % 100000),
        'http.response.status_code', if(failed, '500', '200'),
        'net.peer.ip', concat('10.0.', toString(intHash32(number) % 255), '.',
            toString(intHash32(number * 3) % 255))) AS SpanAttributes,
    toUInt64(intHash32(number) % 900000000) AS Duration,
    intHash32(number * 5) % 50 = 0 AS failed,
    if(failed, 'Error', 'Unset') AS StatusCode,
    if(failed, 'upstream timed out', '') AS StatusMessage,
    if(failed, [Timestamp], []) AS `Events.Timestamp`,
    if(failed, ['exception'], []) AS `Events.Name`,
    if(failed, [map(
        'exception.type', ['context.DeadlineExceeded', 'net.OpError', 'io.EOF'][
            1 + intHash32(number * 19) % 3],
        'exception.message', concat('upstream 10.0.', toString(number % 6), '.7 timed out'),
        'exception.stacktrace', arrayStringConcat(arrayMap(k -> concat(
            'goroutine ', toString(intHash32(number * 23 + k) % 5000), ' [running]: main.handle',
            toString(k), '(0x', lower(hex(intHash32(number * 29 + k) % 65536)), ')'),
            range(12)), '\n'))], []) AS `Events.Attributes`
FROM (
    SELECT number, intDiv(number, 10) AS trace,
        toDateTime64('2026-10-20 08:00:00', 9, 'UTC')
            + toIntervalMicrosecond(toInt64(trace * {us})) AS t
    FROM numbers({count})
)
