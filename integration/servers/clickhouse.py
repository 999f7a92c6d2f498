"""ClickHouse's HTTP interface, as clickhouse-go and curl use it, on the engine of PyPI's chdb-core.

Usage: clickhouse.py HOST:PORT DIR CONFIG, for a folder and a configuration file or "". The password
of the user is in TRACEFLAKETEST_CHILD_PASSWORD: ClickHouse reads any file that this process may read,
which other users of the machine must not. The server ends when its standard input does.
"""

import base64
import contextlib
import http.server
import os
import re
import sys
import tempfile
import threading
import types
import urllib.parse

import clickhouse_cityhash.cityhash
import lz4.block

# Nothing here needs it, and it takes longer to load than the engine.
sys.modules["pyarrow"] = types.SimpleNamespace(RecordBatchReader=None)
import chdb  # noqa: E402

address, folder, config = sys.argv[1:]
data = folder + "/data" + ("?config-file=" + config if config else "")
password = os.environ["TRACEFLAKETEST_CHILD_PASSWORD"]

# Parameters of requests that are not settings of the statement.
NOT_SETTINGS = {
    "query", "database", "default_format", "client_protocol_version", "query_id", "role",
    "compress", "decompress", "wait_end_of_query",
    # A statement here always ends before its answer begins.
    "async_insert", "wait_for_async_insert",
}  # fmt: skip

# The first query of clickhouse-go on a connection, but for the version, which a test may replace.
HELLO = r"SELECT displayName\(\), .*, revision\(\), timezone\(\)"


def quote(text, mark):
    return mark + text.replace("\\", "\\\\").replace(mark, "\\" + mark) + mark


def string(text):
    return bytes([len(text)]) + text.encode()


def hello(name, version, _, timezone):
    """Returns the answer to HELLO as clickhouse-go reads it: a block of the Native format in the
    client's revision. The server's revision in it is 0, in which the engine writes the format."""
    block = b"\1\0\2\xff\xff\xff\xff\0\4\1"  # about the block; 4 columns, 1 row
    for value in (name, version, None, timezone):
        block += string("column") + string("String" if value else "UInt32") + b"\0"
        block += string(value) if value else bytes(4)
    return block


def compress(text):
    body = lz4.block.compress(text, store_size=False)
    frame = b"\x82" + (len(body) + 9).to_bytes(4, "little") + len(text).to_bytes(4, "little") + body
    low, high = divmod(clickhouse_cityhash.cityhash.CityHash128(frame), 1 << 64)
    return low.to_bytes(8, "little") + high.to_bytes(8, "little") + frame


def decompress(frames):
    """Decompresses frames. TCP has checked what their checksums, the first 16 bytes, check."""
    parts, at = [], 0
    while at < len(frames):
        size, whole = (int.from_bytes(frames[at + i : at + i + 4], "little") for i in (17, 21))
        part = frames[at + 25 : at + 16 + size]
        parts.append(lz4.block.decompress(part, uncompressed_size=whole))
        at += 16 + size
    return b"".join(parts)


def run(parameters, statement, body):
    """Runs a statement with the database, the role, the settings and the parameters of a request:
    SET sets a parameter too, if its name begins with param_."""
    engine = chdb.connect(data)
    try:
        engine.query("USE " + quote(parameters.get("database", "default"), "`"))
        if role := parameters.get("role"):
            engine.query("SET ROLE " + quote(role, "`"))
        for name, value in parameters.items():
            if name not in NOT_SETTINGS:
                engine.query("SET " + quote(name, "`") + " = " + quote(value, "'"))
        if re.fullmatch(HELLO, statement) and "client_protocol_version" in parameters:
            row = engine.query(statement, "TabSeparated").bytes().decode()
            return hello(*row.rstrip("\n").split("\t"))
        # In the text of a statement, an empty line would end the rows.
        with tempfile.NamedTemporaryFile(dir=folder) if body else contextlib.nullcontext() as rows:
            if body:
                rows.write(body)
                rows.flush()
                infile = " FROM INFILE " + quote(rows.name, "'") + " COMPRESSION 'none' "
                statement = re.sub(
                    r"(?is)\bFORMAT\s+\w+\s*(SETTINGS\s+[^']*)?;?\s*$",
                    lambda form: infile + form[0],
                    statement,
                )
            return engine.query(statement, parameters.get("default_format", "TabSeparated")).bytes()
    finally:
        engine.close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keeps connections
    wbufsize = -1  # one packet for header and body

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def do_POST(self):
        body = self.body()
        query = urllib.parse.urlsplit(self.path).query
        parameters = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        basic = base64.b64decode(self.headers.get("Authorization", "")[len("Basic ") :]).decode()
        try:
            if password not in (self.headers.get("X-ClickHouse-Key"), basic.partition(":")[2]):
                raise RuntimeError(
                    "Code: 516. DB::Exception: the user or the password is wrong. "
                    "(AUTHENTICATION_FAILED)"
                )
            if parameters.get("decompress") == "1":
                body = decompress(body)
            statement = parameters.get("query", "")
            if not statement:
                statement, body = body.decode(), b""
            result = run(parameters, statement, body)
            if parameters.get("compress") == "1" and result:
                result = compress(result)
            self.send_response(200)
        except Exception as error:  # chdb raises RuntimeError and its subclasses
            # The library repeats the code.
            text = re.sub(r"^(Code: \d+\. DB::Exception: )+", r"\1", str(error))
            self.send_response(500)
            if code := re.match(r"Code: (\d+)\.", text):  # which clients read
                self.send_header("X-ClickHouse-Exception-Code", code[1])
            result = text.encode()
        self.send_header("Content-Length", str(len(result)))
        self.end_headers()
        self.wfile.write(result)

    do_GET = do_POST

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128


def end_with_parent():
    sys.stdin.read()
    os._exit(0)


threading.Thread(target=end_with_parent, daemon=True).start()
running = chdb.connect(data)  # keeps the engine running between connections
host, port = address.split(":")
Server((host, int(port)), Handler).serve_forever()
