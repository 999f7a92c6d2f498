"""The rows of testdata/life.json, and servers that fork."""

import ctypes
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import billiard
import pytest
import snapshot_restore_py
from opentelemetry.context import Context
from test_id_generator import together
from vectors import read

import traceflake._id_generator as module
from traceflake import TraceflakeIdGenerator, XTraceIdPropagator
from traceflake._propagator import from_environment

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

# Python 3.12 and newer warn of forks in a process with threads.
ignore_threads = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")

generators = [TraceflakeIdGenerator(), TraceflakeIdGenerator()]

HERE = Path(__file__).parent


def test_table():
    """There is a test for each row."""
    names = [row["name"] for row in read("life.json")["rows"] if "python" in row["clients"]]
    assert names
    for name in names:
        assert "test_" + name.lower().replace(" ", "_") in globals()


def generate(_=0):
    """Return low halves and span IDs of both generators, in turn."""
    return [
        number
        for _ in range(5)
        for g in generators
        for number in (g.generate_span_id(), g.generate_trace_id() & (2**64 - 1))
    ]


def assert_distinct(lists):
    numbers = [number for numbers in lists for number in numbers]
    assert len(set(numbers)) == len(numbers) == 20 * len(lists)


def test_two_generators():
    assert_distinct([generate() for _ in range(50)])


def test_threads():
    clears = together(64, 300)
    assert len(set(clears)) == len(clears)


def forked(fork):
    """Return what a child generates, which ends within a minute."""
    reader, writer = os.pipe()
    pid = fork()
    if pid == 0:
        os.write(writer, json.dumps(generate()).encode())
        os._exit(0)
    os.close(writer)
    deadline = time.monotonic() + 60
    while (child := os.waitpid(pid, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    assert child == (pid, 0), "the child does not end"
    with open(reader) as pipe:  # noqa: PTH123
        return json.load(pipe)


def fork_in_c():
    return ctypes.PyDLL(None).fork()


@needs_fork
@ignore_threads
def test_fork():
    made = generate()  # so that random numbers are left
    assert_distinct([made, forked(os.fork), forked(os.fork), generate()])


@needs_fork
def test_fork_in_c():
    made = generate()
    assert_distinct([made, forked(fork_in_c), forked(fork_in_c), generate()])


@needs_fork
@ignore_threads
@pytest.mark.parametrize("fork", ["fork", "fork_in_c"])
def test_fork_in_a_call(fork):
    held, done = threading.Event(), threading.Event()

    def hold():
        with generators[0]._state().lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        assert len(forked(os.fork if fork == "fork" else fork_in_c)) == 20
    finally:
        done.set()
        thread.join()


def test_signal_handler():
    generator = TraceflakeIdGenerator()
    ids = []

    def handler(*_):
        ids.extend((generator.generate_trace_id(), generator.generate_trace_id()))

    previous = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
    try:
        end = time.monotonic() + 1
        while time.monotonic() < end:
            ids.append(generator.generate_trace_id())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert len({i >> 64 for i in ids}) == len({i & (2**64 - 1) for i in ids}) == len(ids)


def test_restore():
    """AWS's own module for functions that start from a snapshot, which calls each hook."""
    made = generate()
    ready = {number for g in generators for number in g._state().numbers}
    assert ready
    for hook, args, kwargs in snapshot_restore_py.get_after_restore():
        hook(*args, **kwargs)
    after = generate()
    assert_distinct([made, after])
    assert not ready & {*after, *(n for g in generators for n in g._state().numbers)}


def test_without_the_module_for_restores():
    code = "import sys; sys.modules['snapshot_restore_py'] = None; import traceflake"
    code += "; assert traceflake.TraceflakeIdGenerator().generate_span_id()"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_clock_steps(monkeypatch):
    now = [1_800_000_000_000]
    monkeypatch.setattr(module, "time_ns", lambda: now[0] * 1_000_000)
    generator = TraceflakeIdGenerator()
    first = generator.generate_trace_id()
    now[0] -= 1999
    assert generator.generate_trace_id() >> 64 == (first >> 64) + 1
    now[0] -= 2
    assert (generator.generate_trace_id() >> 87) + 1_577_836_800_000 == now[0]


def test_turkish_locale():
    """In a process of its own, since the locale is that of a process."""
    env = {**os.environ, "LC_ALL": "tr_TR.UTF-8", "PYTHONPATH": pythonpath(HERE)}
    code = "from test_life import *; assert_any_case()"
    subprocess.run([sys.executable, "-c", code], env=env, check=True)


def assert_any_case():
    fields = from_environment(b3_encoding="SINGLE").fields
    assert fields == XTraceIdPropagator(b3_encoding="single").fields
    digits = "32D1F0A9C8000005A1B2C3D4E5F60718"
    carrier = {"x-trace-id": [digits], "b3": ["00f067aa0ba902b7-53995c3f42cd8ad8-1"]}
    context = XTraceIdPropagator().extract(carrier, Context())
    headers = {}
    XTraceIdPropagator().inject(headers, context)
    assert headers["x-trace-id"] == digits.lower()


OPTIONS = ("header", "b3_encoding", "b3_64bit", "deferred_sampled", "dashes")


def test_empty_settings(monkeypatch):
    for empty in "", " ":
        for name in OPTIONS:
            monkeypatch.setenv(f"OTEL_TRACEFLAKE_{name.upper()}", empty)
        assert vars(from_environment()) == vars(XTraceIdPropagator())
    monkeypatch.undo()
    assert vars(from_environment(**dict.fromkeys(OPTIONS))) == vars(XTraceIdPropagator())


def test_misspelt_settings(monkeypatch):
    wrong = dict(zip(OPTIONS, ("b3", "x", "yes", "yes", "yes"), strict=True))
    for name, value in wrong.items():
        message = f"{name} is {value!r}"
        with pytest.raises(ValueError, match=message):
            from_environment(**{name: value})
        monkeypatch.setenv(f"OTEL_TRACEFLAKE_{name.upper()}", value)
        with pytest.raises(ValueError, match=message):
            from_environment()
        monkeypatch.undo()
    with pytest.raises(TypeError, match="b3_encodign"):
        from_environment(b3_encodign="single")


def test_settings(monkeypatch):
    for name, value in {
        "HEADER": "x-request-id",
        "B3_ENCODING": "single",
        "B3_64BIT": "true",
        "DEFERRED_SAMPLED": "True",
        "DASHES": "TRUE",
    }.items():
        monkeypatch.setenv(f"OTEL_TRACEFLAKE_{name}", value)
    want = XTraceIdPropagator(
        header="x-request-id",
        b3_encoding="single",
        b3_64bit=True,
        deferred_sampled=True,
        dashes=True,
    )
    assert vars(from_environment()) == vars(want)
    assert vars(from_environment(header="x"))["_header"] == "x"
    assert vars(from_environment(dashes=False))["_dashes"] is False


@needs_fork
@ignore_threads
@pytest.mark.parametrize("package", [multiprocessing, billiard])  # billiard: celery's
def test_pools(package):
    made = generate()
    with package.get_context("fork").Pool(4) as pool:
        children = pool.map(generate, range(8), chunksize=1)
    assert_distinct([made, generate(), *children])


APP = """
import json, os
from test_life import generate
generate()
def application(environ, start_response):
    start_response('200 OK', [])
    return [json.dumps([os.getpid(), generate()]).encode()]
"""


def pythonpath(*folders):
    """Return a path with these folders, which keeps that of the tests."""
    return os.pathsep.join([*map(str, folders), os.environ.get("PYTHONPATH", "")])


@needs_fork
def test_gunicorn(tmp_path):
    """Workers of a preloaded application, which has generated IDs before."""
    port = tmp_path / "port"
    (tmp_path / "conf.py").write_text(
        "bind, workers, preload_app = '127.0.0.1:0', 3, True\n"
        "def when_ready(server):\n"
        f"    open({str(port)!r}, 'w').write(str(server.LISTENERS[0].getsockname()[1]))\n"
    )
    command = [sys.executable, "-m", "gunicorn", "-c", str(tmp_path / "conf.py"), "app"]
    check_server(tmp_path, command, lambda: int(port.read_text()))


@needs_fork
def test_uwsgi(tmp_path):
    """As before. uWSGI forks in C, and by default without Python's hooks."""
    uwsgi = Path(sys.executable).with_name("uwsgi")
    if not uwsgi.exists():
        pytest.skip("uWSGI is not there: test.sh installs it with the newest SDK")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        os.set_inheritable(listener.fileno(), True)  # noqa: FBT003
        command = [uwsgi, "--http-socket", f"fd://{listener.fileno()}", "--master"]
        command += [
            "--processes",
            "3",
            "--module",
            "app",
            "--virtualenv",
            sys.prefix,
            "--die-on-term",
        ]
        port = listener.getsockname()[1]
        check_server(tmp_path, command, lambda: port, pass_fds=[listener.fileno()])


def check_server(folder, command, port, **options):
    (folder / "app.py").write_text(APP)
    env = {**os.environ, "PYTHONPATH": pythonpath(folder, HERE)}
    log = folder / "log"
    with (
        log.open("w") as out,
        subprocess.Popen(command, env=env, cwd=folder, stdout=out, stderr=out, **options) as server,
    ):
        try:
            made = answers(server, port)
        except AssertionError as err:
            raise AssertionError(log.read_text()) from err
        finally:
            server.terminate()
    assert len({pid for pid, _ in made}) > 1
    assert_distinct([numbers for _, numbers in made])


def answers(server, port):
    deadline = time.monotonic() + 120
    made = []
    while len(made) < 20 or len({pid for pid, _ in made}) < 2:
        assert time.monotonic() < deadline, "fewer than two workers answer"
        assert server.poll() is None, "the server has ended"
        try:
            url = f"http://127.0.0.1:{port()}/"
            with urllib.request.urlopen(url, timeout=60) as response:
                made.append(json.load(response))
        except (OSError, ValueError):  # it is not ready
            time.sleep(0.05)
    return made
