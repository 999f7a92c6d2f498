"""Time-ordered trace IDs for OpenTelemetry, and a propagator of x-trace-id.

The format and its limits: https://github.com/traceflake/traceflake/blob/main/docs/format.md
"""

from traceflake._id_generator import TraceflakeIdGenerator
from traceflake._propagator import XTraceIdPropagator

__all__ = ["TraceflakeIdGenerator", "XTraceIdPropagator"]
