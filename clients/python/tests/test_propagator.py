"""The rules of testdata/headers.json."""

import json
import re

import pytest
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, TraceState
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from vectors import read

from traceflake import XTraceIdPropagator

RULES = read("headers.json")
IDS = RULES["ids"]


def expand(value):
    """Return a part of a rule with the IDs that it names."""
    return json.loads(re.sub(r"\$([A-Z])", lambda m: IDS[m[1]], json.dumps(value)))


CASES = [pytest.param(expand(case), id=case["name"]) for case in RULES["cases"]]


def propagator(options):
    names = {"encoding": "b3_encoding", "b3TraceID64": "b3_64bit"}
    names |= {"header": "header", "deferredSampled": "deferred_sampled", "dashes": "dashes"}
    ours = XTraceIdPropagator(**{names[k]: v for k, v in options.items() if k in names})
    w3c = TraceContextTextMapPropagator()
    order = {None: [ours], "first": [w3c, ours], "last": [ours, w3c]}
    return CompositePropagator(order[options.get("traceContext")])


def injected(propagator, context):
    headers = {}
    propagator.inject(headers, context)
    headers.pop("traceparent", None)
    return headers


def span_of(context):
    return trace.get_current_span(context).get_span_context()


def with_span(context, trace_id, span_id, *, sampled, remote=False):
    flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
    span = SpanContext(int(trace_id, 16), int(span_id, 16), remote, flags)
    return trace.set_span_in_context(NonRecordingSpan(span), context)


@pytest.mark.parametrize("rule", CASES)
def test_rules(rule):
    options = rule.get("options", {})
    p = propagator(options)
    incoming = {name.lower(): values for name, values in rule["incoming"].items()}
    want = rule.get("elsewhere", rule)
    context = p.extract(incoming, Context())
    span = span_of(context)

    trace_id, sampled = IDS["N"], False
    if extracted := want["extracted"]:
        trace_id, sampled = extracted["traceId"], extracted["sampled"] is True
        assert span.is_remote
        assert f"{span.trace_id:032x}" == trace_id
        assert f"{span.span_id:016x}" == extracted["spanId"]
        assert span.trace_flags == sampled
    else:
        assert not span.is_valid
    assert injected(p, context) == want["forwarded"]

    sampled &= "dropped" not in options
    context = with_span(context, trace_id, IDS["O"], sampled=sampled)
    assert injected(p, context) == want["injected"]


@pytest.mark.parametrize("b3", ["$T-$S", "$T-$S-1", "$H-$S-1"])
def test_the_same_span_of_another_propagator_stays(b3):
    w3c = SpanContext(
        int(IDS["T"], 16),
        int(IDS["S"], 16),
        is_remote=True,
        trace_flags=TraceFlags(3),
        trace_state=TraceState([("v", "1")]),
    )
    context = trace.set_span_in_context(NonRecordingSpan(w3c), Context())
    headers = expand({"x-trace-id": "$T", "b3": b3})
    assert span_of(XTraceIdPropagator().extract(headers, context)) == w3c


def test_the_last_request_decides():
    p = XTraceIdPropagator()
    context = Context()
    for b3 in "$T-$S-d", "$T-$P-0":
        context = p.extract(expand({"b3": b3}), context)
    assert injected(p, context)["x-b3-sampled"] == "0"

    context = with_span(Context(), IDS["T"], IDS["O"], sampled=True)
    assert p.extract({}, context) is context
    context = p.extract(expand({"b3": "$T-$S"}), context)
    assert not span_of(context).trace_flags.sampled


@pytest.mark.parametrize("encoding", ["multi", "single", "both", "none"])
def test_fields_are_what_is_injected(encoding):
    p = XTraceIdPropagator(b3_encoding=encoding)
    written = set()
    for b3 in "$T-$S-d", "$T-$S-0":
        written |= injected(p, p.extract(expand({"b3": b3}), Context())).keys()
    assert p.fields == written


@pytest.mark.parametrize("name", ["", "a b", "x:y", "é", "b3", "X-B3-TraceId", "Traceparent"])
def test_bad_header_names(name):
    with pytest.raises(ValueError, match=f"header is {name!r}"):
        XTraceIdPropagator(header=name)


@pytest.mark.parametrize("name", ["X-Request-Id", "x_trace", "!#$%&'*+-.^_`|~"])
def test_good_header_names(name):
    assert name in XTraceIdPropagator(header=name).fields
