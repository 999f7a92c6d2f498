from __future__ import annotations

import os
import struct
import threading
from os import getpid
from time import time_ns

from opentelemetry.sdk.trace.id_generator import IdGenerator

try:  # in functions of AWS Lambda that start from a snapshot
    from snapshot_restore_py import register_after_restore
except ImportError:
    register_after_restore = None

_EPOCH = 1_577_836_800_000  # 2020-01-01T00:00:00Z
_SEQUENCE_BITS = 23
_END = 1 << 64  # of times and sequence numbers, in September 2089
_HOLD = 2000 << _SEQUENCE_BITS  # two seconds
_BLOCK = struct.Struct("=128Q")


class _State:
    """What a generator has drawn and generated in one process."""

    def __init__(self) -> None:
        # Reentrant, because a signal handler may start a span within a call.
        self.lock = threading.RLock()
        self.last = 0  # the time and sequence number of the last trace ID
        self.numbers: list[int] = []


class TraceflakeIdGenerator(IdGenerator):
    """Generates trace IDs that begin with their time and sort by it. Span IDs are random.

    A trace ID has 41 bits of milliseconds since 2020, 23 bits of a sequence number, and 64 random
    bits. The trace IDs of a generator increase, even if the clock steps back by less than two
    seconds; after a larger step they follow the clock. While the clock is outside the years 2020
    to 2089, all bits are random.

    A generator is safe for threads, signal handlers and forks.
    """

    def __init__(self) -> None:
        # A child has a copy of its parent's random numbers, and of a lock that a thread may have
        # held. Python's hooks do not run after a fork in C, as uWSGI's, so each ID asks for the
        # process that it belongs to.
        self._states: dict[int, _State] = {}
        if register_after_restore is not None:
            register_after_restore(self._states.clear)

    def _state(self) -> _State:
        """Return the state of this process, which begins if there is none."""
        process = getpid()
        state = self._states.setdefault(process, _State())  # atomic
        for other in list(self._states):  # of which a child could get the number
            if other != process:
                self._states.pop(other, None)
        return state

    def generate_trace_id(self) -> int:
        """Return a trace ID that is greater than the last one."""
        state = self._states.get(getpid()) or self._state()
        return (_next_clear(state) or _random(state)) << 64 | _random(state)

    def generate_span_id(self) -> int:
        """Return 64 random bits that are not all 0."""
        return _random(self._states.get(getpid()) or self._state())

    def is_trace_id_random(self) -> bool:
        """Return True: the last 64 bits are random, which samplers may rely on."""
        return True


def _random(state: _State) -> int:
    """Return 64 random bits that are not all 0."""
    while True:
        try:
            number = state.numbers.pop()  # atomic, so that it needs no lock
        except IndexError:  # noqa: PERF203
            state.numbers = list(_BLOCK.unpack(os.urandom(_BLOCK.size)))
        else:
            if number:
                return number


def _next_clear(state: _State) -> int:
    """Return the clear half of a trace ID, or 0 if the clock is outside its range."""
    lock = state.lock
    lock.acquire()  # a with statement takes twice as long
    try:
        while True:
            # The state is read before the clock. Otherwise a call that was interrupted in between
            # would mistake the progress of the others for a step of the clock.
            last = state.last
            floor = time_ns() // 1_000_000 - _EPOCH << _SEQUENCE_BITS
            if not 0 <= floor < _END:
                return 0
            floor = floor or 1  # 64-bit IDs have a clear half of 0
            clear = last + 1
            if not floor <= clear < floor + _HOLD or clear == _END:
                clear = floor
            if state.last == last:  # no signal handler was here
                state.last = clear
                return clear
    finally:
        lock.release()
