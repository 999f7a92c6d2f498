"""The vectors of testdata/format.json."""

import asyncio
import itertools
import struct
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import reduce

import pytest
from vectors import read

import traceflake._id_generator as module
from traceflake import TraceflakeIdGenerator

FORMAT = read("format.json")
MASK = 2**64 - 1


def named(vectors):
    return [pytest.param(v, id=v["name"]) for v in vectors]


@pytest.fixture
def clock(monkeypatch):
    """Return a list whose element is the time in milliseconds."""
    now = [0]
    monkeypatch.setattr(module, "time_ns", lambda: now[0] * 1_000_000 + 999_999)
    return now


@pytest.mark.parametrize("v", named(FORMAT["ids"]))
def test_ids(v, clock, monkeypatch):
    clock[0] = v["unix_ms"]
    low = int(v["low"], 16)
    monkeypatch.setattr(module.os, "urandom", lambda _: struct.pack("=128Q", *[low] * 128))
    generator = TraceflakeIdGenerator()
    generator._state().last = (int(v["id"], 16) >> 64) - 1
    assert f"{generator.generate_trace_id():032x}" == v["id"]


def assert_random(numbers):
    """Each bit is 0 in some numbers and 1 in others; with 64 that fails once in 10^17 runs."""
    assert reduce(lambda a, b: a & b, numbers) == 0
    assert reduce(lambda a, b: a | b, numbers) == MASK
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("v", named(FORMAT["generator"]))
def test_generator(v, clock):
    generator = TraceflakeIdGenerator()
    generator._state().last = int(v.get("last", "0"), 16)
    for step in v["steps"]:
        clock[0] = step["unix_ms"]
        clears = [generator.generate_trace_id() >> 64 for _ in range(step["n"])]
        if step["clear"] is None:
            assert_random(clears)
        else:
            first = int(step["clear"], 16)
            assert clears == list(range(first, first + step["n"]))
    assert_random([generator.generate_trace_id() & MASK for _ in range(64)])
    assert_random([generator.generate_span_id() for _ in range(64)])


def test_stopped(monkeypatch):
    v = FORMAT["stopped"]
    generator = TraceflakeIdGenerator()
    now = v["unix_ms"]
    clears = []

    def clock():
        nonlocal now
        before, now = now, v["meanwhile_ms"]
        if not clears:
            clears.append(None)
            clears[0] = module._next_clear(generator._state())
        return before * 1_000_000

    monkeypatch.setattr(module, "time_ns", clock)
    clears.append(module._next_clear(generator._state()))
    assert [f"{clear:016x}" for clear in clears] == v["clears"]


def test_zero_is_drawn_again(monkeypatch):
    v = FORMAT["random"]
    draws = [int(x, 16) for x in v["draws"]]
    draws = [MASK] * (128 - len(draws)) + draws[::-1]  # the last one is taken first
    monkeypatch.setattr(module.os, "urandom", lambda _: struct.pack("=128Q", *draws))
    generator = TraceflakeIdGenerator()
    calls = itertools.cycle([generator.generate_trace_id, generator.generate_span_id])
    halves = [f"{call() & MASK:016x}" for call, _ in zip(calls, v["halves"], strict=False)]
    assert halves == v["halves"]


def together(threads, n):
    """Return the clear halves of trace IDs that threads generate; no other half is repeated."""
    generator = TraceflakeIdGenerator()
    start = threading.Barrier(threads)

    def generate():
        start.wait()
        return [(generator.generate_trace_id(), generator.generate_span_id()) for _ in range(n)]

    with ThreadPoolExecutor(threads) as executor:
        futures = [executor.submit(generate) for _ in range(threads)]
        ids = list(itertools.chain.from_iterable(f.result() for f in futures))
    halves = [trace & MASK for trace, _ in ids] + [span for _, span in ids]
    assert len(set(halves)) == len(halves)
    return [trace >> 64 for trace, _ in ids]


@pytest.fixture
def busy_switches():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("busy_switches")
@pytest.mark.parametrize("threads", [FORMAT["threads"]["threads"], 64])
def test_threads(clock, threads):
    v = FORMAT["threads"]
    clock[0] = v["unix_ms"]
    first = int(v["clear"], 16)
    clears = together(threads, 20_000 // threads)
    assert sorted(clears) == list(range(first, first + len(clears)))


@pytest.mark.usefixtures("busy_switches")
def test_threads_with_a_moving_clock(monkeypatch):
    v = FORMAT["moving"]
    readings = itertools.count()
    monkeypatch.setattr(
        module,
        "time_ns",
        lambda: (v["unix_ms"] + next(readings) // v["readings"] * v["step_ms"]) * 1_000_000,
    )
    clears = together(v["threads"], v["n"] // 4)
    assert len(set(clears)) == len(clears)


def test_asyncio():
    generator = TraceflakeIdGenerator()

    async def task():
        ids = []
        for _ in range(100):
            ids.append(generator.generate_trace_id())
            await asyncio.sleep(0)
        return ids

    async def main():
        return await asyncio.gather(*(task() for _ in range(100)))

    ids = list(itertools.chain.from_iterable(asyncio.run(main())))
    assert len({i >> 64 for i in ids}) == len({i & MASK for i in ids}) == 10_000


def test_many_have_no_pattern(clock):
    v = FORMAT["many"]
    clock[0] = v["unix_ms"]
    generator = TraceflakeIdGenerator()
    halves = []
    for _ in range(v["n"]):
        halves += generator.generate_trace_id() & MASK, generator.generate_span_id()
    assert len(set(halves)) == len(halves)
    for lag in (1, 2):
        steps = {(b - a) & MASK for a, b in zip(halves, halves[lag:], strict=False)}
        assert len(steps) == len(halves) - lag


def test_ids_are_of_now():
    generator = TraceflakeIdGenerator()
    before = time.time_ns() // 1_000_000
    millis = (generator.generate_trace_id() >> 87) + 1577836800000
    assert before <= millis <= time.time_ns() // 1_000_000
    assert generator.is_trace_id_random()
