from __future__ import annotations

import os
import re
from typing import Any, Literal

from opentelemetry import trace
from opentelemetry.context import Context, create_key, get_value, set_value
from opentelemetry.propagators.textmap import (
    CarrierT,
    Getter,
    Setter,
    TextMapPropagator,
    default_getter,
    default_setter,
)
from opentelemetry.trace import INVALID_SPAN_CONTEXT, NonRecordingSpan, SpanContext, TraceFlags

_HEADER = "x-trace-id"
_SINGLE = "b3"
_TRACE_ID = "x-b3-traceid"
_SPAN_ID = "x-b3-spanid"
_PARENT_SPAN_ID = "x-b3-parentspanid"
_SAMPLED = "x-b3-sampled"
_FLAGS = "x-b3-flags"

# B3's sampling decisions, as the header b3 has them.
_UNDECIDED = ""  # left to the receiver
_DECISIONS = {"": _UNDECIDED, "0": "0", "false": "0", "1": "1", "true": "1"}
_DEBUG = "d"  # sampled, and services must not sample it away

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TAKEN = re.compile(r"traceparent|tracestate|baggage|b3|x-b3-.*", re.IGNORECASE)
_DIGITS = re.compile(r"[0-9A-Fa-f]{32}")
_DASHES = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_B3_TRACE_ID = re.compile(r"([0-9a-f]{16}){1,2}")
_B3_SPAN_ID = re.compile(r"[0-9a-f]{16}")
_B3_SINGLE = re.compile(r"([^-]*)-([^-]*)(?:-([01d])(?:-([^-]*))?)?")

_LOW = (1 << 64) - 1

# What a span context cannot express of a decision: that it is missing, or the debug flag. It
# belongs to one trace: one that begins here does not have it.
_STATE = create_key("traceflake-b3")


class XTraceIdPropagator(TextMapPropagator):
    """Propagates the trace ID in a header x-trace-id alongside B3.

    B3 contains the parent span and the sampling decision. The propagator reads and writes it
    itself: do not list a B3 propagator, too. The rules:
    https://github.com/traceflake/traceflake/blob/main/docs/headers.md. The SDK for Python starts
    a new trace if the parent has no span ID, so x-trace-id is ignored without B3 or another
    propagator's parent in the same trace.

    Args:
        header: The name of the header that carries the trace ID.
        b3_encoding: How B3 is written: "multi" (separate headers), "single", "both" or "none".
        b3_64bit: Write only the last 64 bits of the trace ID into B3.
        deferred_sampled: Treat B3 with IDs but without a decision as sampled.
        dashes: Also read a trace ID in the form of a UUID.

    Raises:
        ValueError: An option has a value that is not possible.

    """

    def __init__(
        self,
        *,
        header: str = _HEADER,
        b3_encoding: Literal["multi", "single", "both", "none"] = "multi",
        b3_64bit: bool = False,
        deferred_sampled: bool = False,
        dashes: bool = False,
    ) -> None:
        if not _TOKEN.fullmatch(header) or _TAKEN.fullmatch(header):
            msg = f"traceflake: header is {header!r}, which is not a name for a header of its own"
            raise ValueError(msg)
        self._header = header
        encoding = _one_of("b3_encoding", b3_encoding, ("multi", "single", "both", "none"))
        self._single = encoding in ("single", "both")
        self._multi = encoding in ("multi", "both")
        self._b3_64bit = _flag("b3_64bit", b3_64bit)
        self._deferred_sampled = _flag("deferred_sampled", deferred_sampled)
        self._dashes = _flag("dashes", dashes)

    @property
    def fields(self) -> set[str]:
        """The names of the headers that inject may write."""
        names = {self._header}
        if self._single:
            names.add(_SINGLE)
        if self._multi:
            names |= {_TRACE_ID, _SPAN_ID, _SAMPLED, _FLAGS}
        return names

    def extract(
        self,
        carrier: CarrierT,
        context: Context | None = None,
        getter: Getter[CarrierT] = default_getter,
    ) -> Context:
        """Return the context with the remote span of the carrier's headers, if there is one."""
        here = trace.get_current_span(context).get_span_context()
        # By a propagator that is listed before, such as W3C's.
        found = here if here.is_remote and here.is_valid else INVALID_SPAN_CONTEXT
        span, decision = _read_b3(carrier, getter)
        trace_id = self._trace_id(getter.get(carrier, self._header) or [])
        if trace_id and _joins(span, trace_id):
            span = _with(span, trace_id=trace_id)
            if _joins(found, trace_id):
                found = _with(found, trace_id=trace_id)
        elif trace_id and _joins(found, trace_id):
            span = found = _with(found, trace_id=trace_id)
            decision = _decision(span)
        if not span.is_valid:
            return Context() if context is None else context
        if found.trace_id == span.trace_id:
            if found.span_id == span.span_id:
                span = found  # W3C's has a tracestate and the random flag
            elif decision == _UNDECIDED:
                span = _with(span, flags=found.trace_flags)
            decision = decision or _decision(span)
        if decision == _UNDECIDED and self._deferred_sampled:
            span = _with(span, flags=TraceFlags(TraceFlags.SAMPLED))
            decision = "1"
        context = set_value(_STATE, (span.trace_id, decision), context)
        return trace.set_span_in_context(NonRecordingSpan(span), context)

    def _trace_id(self, values: list[str]) -> int:
        """Return the one ID in these values, or 0."""
        ids = set()
        for part in ",".join(values).split(","):
            text = part.strip(" \t")
            if not _DIGITS.fullmatch(text) and not (self._dashes and _DASHES.fullmatch(text)):
                return 0
            ids.add(int(text.replace("-", ""), 16))
        return ids.pop() if len(ids) == 1 else 0

    def inject(
        self,
        carrier: CarrierT,
        context: Context | None = None,
        setter: Setter[CarrierT] = default_setter,
    ) -> None:
        """Write the context's span into the carrier, or nothing if there is none."""
        span = trace.get_current_span(context).get_span_context()
        if not span.is_valid:
            return
        trace_id, span_id = f"{span.trace_id:032x}", f"{span.span_id:016x}"
        decision = _decision_to_send(context, span)
        setter.set(carrier, self._header, trace_id)
        if self._b3_64bit and span.trace_id & _LOW:
            trace_id = trace_id[16:]
        if self._single:
            setter.set(carrier, _SINGLE, "-".join(filter(None, (trace_id, span_id, decision))))
        if self._multi:
            setter.set(carrier, _TRACE_ID, trace_id)
            setter.set(carrier, _SPAN_ID, span_id)
            if decision == _DEBUG:
                setter.set(carrier, _FLAGS, "1")  # it implies the decision
            elif decision != _UNDECIDED:
                setter.set(carrier, _SAMPLED, decision)


def from_environment(**options: Any) -> XTraceIdPropagator:  # noqa: ANN401
    """Return a propagator with the options of a configuration file or OTEL_TRACEFLAKE_….

    Empty ones are unset. One that is unknown or has a value that is not possible is an error.
    """
    for name in ("header", "b3_encoding", "b3_64bit", "deferred_sampled", "dashes"):
        options.setdefault(name, os.environ.get(f"OTEL_TRACEFLAKE_{name.upper()}", "").strip())
    return XTraceIdPropagator(**{k: v for k, v in options.items() if v not in (None, "")})


def _flag(name: str, value: bool | str) -> bool:  # noqa: FBT001
    """Return the value of an option, which is a text if it is from the environment."""
    return _one_of(name, str(value), ("true", "false")) == "true"


def _one_of(name: str, value: str, possible: tuple[str, ...]) -> str:
    if value.lower() not in possible:
        msg = f"traceflake: {name} is {value!r}: want one of {', '.join(possible)}"
        raise ValueError(msg)
    return value.lower()


def _read_b3(carrier: CarrierT, getter: Getter[CarrierT]) -> tuple[SpanContext, str]:
    """Return the span and the decision of the header b3 if it is valid, or of the others.

    A decision without a span is ignored: a caller could force it on a trace that begins here.
    """

    def first(name: str) -> str:
        return next(iter(getter.get(carrier, name) or []), "")

    if match := _B3_SINGLE.fullmatch(first(_SINGLE)):
        trace_id, span_id, decision, parent = match.groups()
        span = _b3_span(trace_id, span_id, parent, decision or _UNDECIDED)
        if span.is_valid:
            return span, decision or _UNDECIDED
    sampled = _DECISIONS.get(first(_SAMPLED).lower())
    if sampled is None:
        return INVALID_SPAN_CONTEXT, _UNDECIDED
    if first(_FLAGS) == "1":
        sampled = _DEBUG
    parent = first(_PARENT_SPAN_ID) or None
    return _b3_span(first(_TRACE_ID), first(_SPAN_ID), parent, sampled), sampled


def _b3_span(trace_id: str, span_id: str, parent: str | None, decision: str) -> SpanContext:
    """Return a remote span, or an invalid one if an ID is malformed."""
    if (
        not _B3_TRACE_ID.fullmatch(trace_id)
        or not _B3_SPAN_ID.fullmatch(span_id)
        or not (parent is None or (_B3_SPAN_ID.fullmatch(parent) and int(parent, 16)))
    ):
        return INVALID_SPAN_CONTEXT
    sampled = decision in ("1", _DEBUG)
    flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=flags)


def _joins(span: SpanContext, trace_id: int) -> bool:
    """Whether a span is in the trace of x-trace-id, or has a 64-bit ID of an old client."""
    return span.is_valid and (span.trace_id == trace_id or span.trace_id <= _LOW)


def _with(
    span: SpanContext, *, trace_id: int | None = None, flags: TraceFlags | None = None
) -> SpanContext:
    return SpanContext(
        trace_id or span.trace_id,
        span.span_id,
        is_remote=True,
        trace_flags=span.trace_flags if flags is None else flags,
        trace_state=span.trace_state,
    )


def _decision(span: SpanContext) -> str:
    return "1" if span.trace_flags.sampled else "0"


def _decision_to_send(context: Context | None, span: SpanContext) -> str:
    state: Any = get_value(_STATE, context)
    trace_id, decision = state or (0, _UNDECIDED)
    if trace_id == span.trace_id:
        if decision == _DEBUG:
            return _DEBUG
        if decision == _UNDECIDED and span.is_remote and not span.trace_flags.sampled:
            return _UNDECIDED  # no span was started here
    return _decision(span)
