"""Processes that are forked after their generator was used."""

import json
import multiprocessing
import os
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import billiard
import pytest

from traceflake import TraceflakeIdGenerator

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

# Python 3.12 and newer warn of forks in a process with threads.
ignore_threads = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")

generator = TraceflakeIdGenerator()


def generate(_=0):
    return [generator.generate_span_id() for _ in range(10)] + [
        generator.generate_trace_id() & (2**64 - 1) for _ in range(10)
    ]


def assert_distinct(lists):
    numbers = [number for numbers in lists for number in numbers]
    assert len(set(numbers)) == len(numbers) == 20 * len(lists)


@ignore_threads
@pytest.mark.parametrize("package", [multiprocessing, billiard])  # billiard: celery's
def test_pools(package):
    made = generate()  # so that random numbers are left
    with package.get_context("fork").Pool(4) as pool:
        children = pool.map(generate, range(8), chunksize=1)
    assert_distinct([made, generate(), *children])


@ignore_threads
def test_fork_while_a_thread_has_the_lock():
    held, done = threading.Event(), threading.Event()

    def hold():
        with generator._lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    pid = os.fork()
    if pid == 0:
        generator.generate_trace_id()
        os._exit(0)
    try:
        deadline = time.monotonic() + 20
        while (child := os.waitpid(pid, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert child == (pid, 0)
    finally:
        done.set()
        thread.join()


def test_gunicorn(tmp_path):
    """Workers of a preloaded application, which has generated IDs before."""
    port = tmp_path / "port"
    (tmp_path / "app.py").write_text(
        "import json, os\n"
        "from test_fork import generate\n"
        "generate()\n"
        "def app(environ, start_response):\n"
        "    start_response('200 OK', [])\n"
        "    return [json.dumps([os.getpid(), generate()]).encode()]\n"
    )
    (tmp_path / "conf.py").write_text(
        "bind, workers, preload_app = '127.0.0.1:0', 3, True\n"
        "def when_ready(server):\n"
        f"    open({str(port)!r}, 'w').write(str(server.LISTENERS[0].getsockname()[1]))\n"
    )
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}:{Path(__file__).parent}"}
    command = [sys.executable, "-m", "gunicorn", "-c", str(tmp_path / "conf.py"), "app:app"]
    with subprocess.Popen(command, env=env, cwd=tmp_path) as server:
        try:
            made = answers(port)
        finally:
            server.terminate()
    assert len({pid for pid, _ in made}) > 1
    assert_distinct([numbers for _, numbers in made])


def answers(port):
    deadline = time.monotonic() + 30
    while not (port.exists() and port.read_text()):
        assert time.monotonic() < deadline, "gunicorn does not start"
        time.sleep(0.05)
    made = []
    while len(made) < 20 or len({pid for pid, _ in made}) < 2:
        assert time.monotonic() < deadline, "only one worker answers"
        with urllib.request.urlopen(f"http://127.0.0.1:{port.read_text()}/") as response:
            made.append(json.load(response))
    return made
