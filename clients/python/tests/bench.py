"""The cost of IDs and of recorded root spans, with the SDK's generator and with ours.

.cache/python/bin/python clients/python/tests/bench.py, in about two minutes.
"""

import pyperf
from opentelemetry.context import Context
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

from traceflake import TraceflakeIdGenerator

runner = pyperf.Runner(processes=10)
for name, generator in ("SDK", RandomIdGenerator()), ("traceflake", TraceflakeIdGenerator()):
    provider = TracerProvider(id_generator=generator)
    provider.add_span_processor(SpanProcessor())
    tracer = provider.get_tracer("benchmark")

    def root_span(tracer=tracer):
        tracer.start_span("GET /", context=Context()).end()

    runner.bench_func(f"trace ID, {name}", generator.generate_trace_id)
    runner.bench_func(f"span ID, {name}", generator.generate_span_id)
    runner.bench_func(f"root span, {name}", root_span)
