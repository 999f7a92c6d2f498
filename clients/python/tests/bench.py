"""The CPU time of IDs and of recorded root spans, with the SDK's generator and with ours.

.cache/python/bin/python clients/python/tests/bench.py -o bench.json, in about a minute; pyperf
stats bench.json shows the minima.
"""

import time

import pyperf
from opentelemetry.context import Context
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

from traceflake import TraceflakeIdGenerator

runner = pyperf.Runner(processes=10)


def bench(name, func):
    def cpu_time(loops):
        start = time.process_time()
        for _ in range(loops):
            func()
        return time.process_time() - start

    runner.bench_time_func(name, cpu_time)


for name, generator in ("SDK", RandomIdGenerator()), ("traceflake", TraceflakeIdGenerator()):
    provider = TracerProvider(id_generator=generator)
    provider.add_span_processor(SpanProcessor())
    tracer = provider.get_tracer("benchmark")
    bench(f"trace ID, {name}", generator.generate_trace_id)
    bench(f"span ID, {name}", generator.generate_span_id)
    bench(
        f"root span, {name}",
        lambda tracer=tracer: tracer.start_span("GET /", context=Context()).end(),
    )
