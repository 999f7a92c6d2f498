"""Time-ordered trace IDs for OpenTelemetry.

The format and its limits: https://github.com/traceflake/traceflake/blob/main/docs/format.md
"""

from traceflake._id_generator import TraceflakeIdGenerator

__all__ = ["TraceflakeIdGenerator"]
