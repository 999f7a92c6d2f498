"""The real SDK, and opentelemetry-instrument."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import TraceFlags

from traceflake import TraceflakeIdGenerator

PROGRAM = """
import json
from opentelemetry import propagate, trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
headers = []
for _ in range(2):
    with trace.get_tracer("test").start_as_current_span("root"):
        headers.append({})
        TraceContextTextMapPropagator().inject(headers[-1])
print("\\nheaders", json.dumps(headers))
"""

CONFIG = """
file_format: "1.0"
tracer_provider:
  processors:
    - simple:
        exporter:
          console:
  id_generator:
    traceflake:
"""


def test_provider():
    provider = TracerProvider(id_generator=TraceflakeIdGenerator())
    span = provider.get_tracer("test").start_span("root")
    context = span.get_span_context()
    assert context.is_valid
    assert context.trace_flags & TraceFlags.RANDOM_TRACE_ID


def instrumented(**env):
    """Return the headers of two traces that a program under opentelemetry-instrument begins."""
    command = [str(Path(sys.executable).with_name("opentelemetry-instrument"))]
    command += [sys.executable, "-c", PROGRAM]
    env = {
        "OTEL_TRACES_EXPORTER": "none",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "PATH": os.environ["PATH"],
        **env,
    }
    result = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr, result.stderr
    return json.loads(re.search(r"^headers (.*)$", result.stdout, re.MULTILINE)[1])


def assert_ours(headers):
    ids = [h["traceparent"].split("-")[1] for h in headers]
    assert all(h["traceparent"].endswith("-03") for h in headers)
    assert ids[0] < ids[1]
    for i in ids:
        age = time.time() - ((int(i, 16) >> 87) + 1577836800000) / 1000
        assert 0 <= age < 60, f"the time of {i}"


def test_environment():
    assert_ours(instrumented(OTEL_PYTHON_ID_GENERATOR="traceflake"))


def test_without_the_variable_the_check_fails():
    with pytest.raises(AssertionError):
        assert_ours(instrumented())


def test_configuration_file(tmp_path):
    pytest.importorskip("opentelemetry.configuration", reason="this SDK has no such file")
    file = tmp_path / "otel.yaml"
    file.write_text(CONFIG)
    assert_ours(instrumented(OTEL_CONFIG_FILE=str(file)))
