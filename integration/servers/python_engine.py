"""Runs statements on the ClickHouse of PyPI's chdb-core, for python.go.

Usage: python_engine.py DIR. It prints its URL, which others on this machine cannot guess. A request
is a form with a format and statements, which have a connection of their own; the response is the
result of the last statement, or the error of one with the status 500.
"""

import http.server
import os
import secrets
import sys
import threading
import urllib.parse

import chdb

data = sys.argv[1]
path = "/" + secrets.token_hex()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = urllib.parse.parse_qs(body, max_num_fields=None)
        if self.path != path:
            self.send_error(404)
            return
        engine = chdb.connect(data)
        try:
            for statement in form["statement"]:
                result = engine.query(statement, form["format"][0]).bytes()
            status = 200
        except Exception as error:  # chdb raises RuntimeError and its subclasses
            status, result = 500, str(error).encode()
        engine.close()
        self.send_response(status)
        self.send_header("Content-Length", str(len(result)))
        self.end_headers()
        self.wfile.write(result)

    def log_message(self, *args):
        pass


def end_with_parent():
    sys.stdin.read()
    os._exit(0)


threading.Thread(target=end_with_parent, daemon=True).start()
running = chdb.connect(data)  # keeps the engine running between connections
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"http://127.0.0.1:{server.server_port}{path}", flush=True)
server.serve_forever()
