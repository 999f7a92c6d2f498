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

import traceflake
from traceflake import TraceflakeIdGenerator

PROGRAM = """
import json
from opentelemetry import propagate, trace
incoming = {"x-request-id": "32d1f0a9c8000005a1b2c3d4e5f60718"}
incoming["b3"] = "00f067aa0ba902b7-53995c3f42cd8ad8"
headers = []
for carrier in {}, {}, incoming:
    context = propagate.extract(carrier)
    with trace.get_tracer("test").start_as_current_span("root", context):
        headers.append({})
        propagate.inject(headers[-1])
print("\\nheaders", json.dumps(headers))
"""

CONFIG = """
file_format: "1.0"
propagator:
  composite:
    - tracecontext:
    - xtraceid:
        header: x-request-id
        b3_encoding: single
        b3_64bit: true
        deferred_sampled: true
tracer_provider:
  processors:
    - simple:
        exporter:
          console:
  id_generator:
    traceflake:
"""


ENVIRONMENT = {
    "OTEL_PROPAGATORS": "tracecontext,xtraceid",
    "OTEL_TRACEFLAKE_HEADER": "x-request-id",
    "OTEL_TRACEFLAKE_B3_ENCODING": "single",
    "OTEL_TRACEFLAKE_B3_64BIT": "true",
    "OTEL_TRACEFLAKE_DEFERRED_SAMPLED": "true",
}


def test_provider():
    provider = TracerProvider(id_generator=TraceflakeIdGenerator())
    span = provider.get_tracer("test").start_span("root")
    context = span.get_span_context()
    assert context.is_valid
    assert context.trace_flags & TraceFlags.RANDOM_TRACE_ID


def test_types(tmp_path):
    assert Path(traceflake.__file__).with_name("py.typed").is_file()
    pytest.importorskip("mypy", reason="it is only there with the newest SDK")
    for encoding, status in ("none", 0), ("b3", 1):
        code = f"import traceflake; traceflake.XTraceIdPropagator(b3_encoding={encoding!r})"
        command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "-c", code]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert result.returncode == status, result.stdout


def instrumented(**env):
    """Return the headers that a program under opentelemetry-instrument sends in three traces."""
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
    """Two new traces, whose IDs have the time of now and are random, and the caller's trace."""
    ids = [h["traceparent"].split("-")[1] for h in headers]
    for i in ids[:2]:
        age = time.time() - ((int(i, 16) >> 87) + 1577836800000) / 1000
        assert 0 <= age < 60, f"the time of {i}"
    assert ids[0] < ids[1]
    assert ids[2] == "32d1f0a9c8000005a1b2c3d4e5f60718"
    assert all(h["traceparent"].endswith("-03") for h in headers[:2])
    for i, h in zip(ids, headers, strict=True):
        assert h["x-request-id"] == i
        assert h["b3"].startswith(i[16:] + "-")
        assert h["b3"].endswith("-1")


def test_environment():
    assert_ours(instrumented(**ENVIRONMENT, OTEL_PYTHON_ID_GENERATOR="traceflake"))


def test_without_the_variable_the_check_fails():
    headers = instrumented(**ENVIRONMENT)
    with pytest.raises(AssertionError, match="the time of"):
        assert_ours(headers)


def test_misspelt_configuration_file(tmp_path):
    """The program ends with an error that contains the option."""
    pytest.importorskip("opentelemetry.configuration", reason="this SDK has no such file")
    file = tmp_path / "otel.yaml"
    for right, wrong in ("b3_encoding", "b3_encodign"), ("b3_64bit: true", "b3_64bit: perhaps"):
        file.write_text(CONFIG.replace(right, wrong))
        with pytest.raises(AssertionError, match=wrong.split(":")[0]):
            assert_ours(instrumented(OTEL_CONFIG_FILE=str(file)))


def test_configuration_file(tmp_path):
    pytest.importorskip("opentelemetry.configuration", reason="this SDK has no such file")
    file = tmp_path / "otel.yaml"
    file.write_text(CONFIG)
    assert_ours(instrumented(OTEL_CONFIG_FILE=str(file)))
