from __future__ import annotations

import os
import struct
import threading
import weakref
from time import time_ns

from opentelemetry.sdk.trace.id_generator import IdGenerator

_EPOCH = 1_577_836_800_000  # 2020-01-01T00:00:00Z
_SEQUENCE_BITS = 23
_END = 1 << 64  # of times and sequence numbers, in September 2089
_HOLD = 2000 << _SEQUENCE_BITS  # two seconds
_BLOCK = struct.Struct("=128Q")


class TraceflakeIdGenerator(IdGenerator):
    """Generates trace IDs that begin with their time and sort by it. Span IDs are random.

    A trace ID has 41 bits of milliseconds since 2020, 23 bits of a sequence number, and 64 random
    bits. The trace IDs of a generator increase, even if the clock steps back by less than two
    seconds; after a larger step they follow the clock. While the clock is outside the years 2020
    to 2089, all bits are random.

    A generator is safe for threads, signal handlers and forks.
    """

    def __init__(self) -> None:
        self._restart()
        _generators.add(self)

    def _restart(self) -> None:
        # Reentrant, because a signal handler may start a span within a call.
        self._lock = threading.RLock()
        self._last = 0  # the time and sequence number of the last trace ID
        self._numbers: list[int] = []

    def generate_trace_id(self) -> int:
        """Return a trace ID that is greater than the last one."""
        clear = self._next_clear() or self.generate_span_id()
        return clear << 64 | self.generate_span_id()

    def generate_span_id(self) -> int:
        """Return 64 random bits that are not all 0."""
        while True:
            try:
                number = self._numbers.pop()  # atomic, so that it needs no lock
            except IndexError:  # noqa: PERF203
                self._numbers = list(_BLOCK.unpack(os.urandom(_BLOCK.size)))
            else:
                if number:
                    return number

    def is_trace_id_random(self) -> bool:
        """Return True: the last 64 bits are random, which samplers may rely on."""
        return True

    def _next_clear(self) -> int:
        """Return the clear half of a trace ID, or 0 if the clock is outside its range."""
        lock = self._lock
        lock.acquire()  # a with statement takes twice as long
        try:
            while True:
                # The state is read before the clock. Otherwise a call that was interrupted in
                # between would mistake the progress of the others for a step of the clock.
                last = self._last
                floor = time_ns() // 1_000_000 - _EPOCH << _SEQUENCE_BITS
                if not 0 <= floor < _END:
                    return 0
                floor = floor or 1  # 64-bit IDs have a clear half of 0
                clear = last + 1
                if not floor <= clear < floor + _HOLD or clear == _END:
                    clear = floor
                if self._last == last:  # no signal handler was here
                    self._last = clear
                    return clear
        finally:
            lock.release()


_generators: weakref.WeakSet[TraceflakeIdGenerator] = weakref.WeakSet()


def _restart_all() -> None:
    for generator in _generators:
        generator._restart()  # noqa: SLF001


# A child has a copy of the random numbers, and of a lock that a thread may have held.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_restart_all)
