-- One day of traces of 1 to 15 spans, 8 on average: 50 services, the first the busiest, with 8
-- names each. Everything follows from the trace's number, the span's number and the seed. One span
-- in 1000 is late by up to 20 minutes.
INSERT INTO source
SELECT Timestamp, ms, h1, h2,
    lower(hex(reverse(reinterpretAsFixedString(cityHash64(n, i, 7, {seed}))))),
    if(i = 0, '', lower(hex(reverse(reinterpretAsFixedString(
        cityHash64(n, intDiv(i * (h % 97), 97), 7, {seed})))))),
    concat(['GET', 'POST', 'SELECT', 'publish'][1 + route % 4], ' /', toString(route)),
    ['Server', 'Client', 'Internal'][1 + bitShiftRight(h, 16) % 3],
    service,
    map('service.name', service,
        'service.version', concat('1.', toString(s % 7), '.2'),
        'deployment.environment', 'production',
        'k8s.pod.name', concat(service, '-', lower(hex(cityHash64(s, pod)))),
        'k8s.node.name', concat('node-', toString(pod)),
        'host.arch', 'amd64',
        'telemetry.sdk.language', 'go',
        'telemetry.sdk.version', '1.47.0'),
    map('http.request.method', 'GET',
        'http.route', concat('/api/', toString(route)),
        'http.response.status_code', if(failed, '500', '200'),
        'network.peer.address', concat('10.0.', toString(bitShiftRight(h, 30) % 16), '.',
            toString(bitShiftRight(h, 34) % 256)),
        'user.id', toString(h1 % 100000),
        'url.path', concat('/api/', toString(route), '/',
            toString(bitShiftRight(h, 20) % 1000000))),
    toUInt64(exp(10 + 8 * ((h % 1000003) / 1000003))),
    if(failed, 'Error', 'Unset'), if(failed, 'upstream timed out', ''),
    if(failed, [Timestamp], []), if(failed, ['exception'], []),
    if(failed, [map(
        'exception.type', ['context.DeadlineExceeded', 'net.OpError', 'io.EOF'][
            1 + bitShiftRight(h, 12) % 3],
        'exception.message', concat('upstream 10.0.', toString(pod), '.7 timed out'),
        'exception.stacktrace', arrayStringConcat(arrayMap(
            k -> concat('goroutine ', toString(bitShiftRight(h, k) % 5000),
                ' [running]: main.handle', toString(k), '(0x',
                lower(hex(bitShiftRight(h, k) % 65536)), ')'),
            range(12)), '\n'))], [])
FROM (
    SELECT number AS n,
        {start} + toInt64(intDiv(n * 86400000, {traces}))
            + toInt64(cityHash64(n, 3, {seed}) % (1 + intDiv(86400000, {traces}))) AS ms,
        cityHash64(n, 1, {seed}) AS h1, cityHash64(n, 2, {seed}) AS h2,
        arrayJoin(range(1 + cityHash64(n, 4, {seed}) % 15)) AS i,
        cityHash64(n, i, 5, {seed}) AS h, cityHash64(n, i, 9, {seed}) AS delay,
        h % 50 = 0 AS failed, bitShiftRight(h, 8) % 8 AS route, bitShiftRight(h, 24) % 6 AS pod,
        toUInt32(50 * pow((bitShiftRight(h, 40) % 100000) / 100000, 1.5)) AS s,
        concat('service-', toString(s)) AS service,
        fromUnixTimestamp64Nano(ms * 1000000 + toInt64(cityHash64(n, i, 6, {seed}) % 1000000)
            + if(i = 0, 0, toInt64(delay % if(cityHash64(n, i, 8, {seed}) % 1000 = 0,
                1200000000000, 500000000)))) AS Timestamp
    FROM numbers({from}, {count})
)
ORDER BY Timestamp
