"""Runs statements on the ClickHouse of PyPI's chdb-core, for python.go.

Usage: python_engine.py DIR SOCKET. Each connection to the socket is a connection to the engine. A
request is a format and a statement, a response is the kind of its result ("=" or "!" for an error)
and the result; each is preceded by its length, 8 bytes, big-endian.
"""

import os
import socketserver
import struct
import sys
import threading

import chdb

path, socket = sys.argv[1:]


class Connection(socketserver.StreamRequestHandler):
    def read(self):
        head = self.rfile.read(8)
        return self.rfile.read(struct.unpack(">Q", head)[0]).decode() if head else None

    def write(self, data):
        self.wfile.write(struct.pack(">Q", len(data)) + data)

    def handle(self):
        engine = chdb.connect(path)
        while (form := self.read()) is not None:
            statement = self.read()
            try:
                self.write(b"=" + engine.query(statement, form).bytes())
            except Exception as error:  # chdb raises RuntimeError and its subclasses
                self.write(b"!" + str(error).encode())
        engine.close()


class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


def end_with_parent():
    sys.stdin.read()
    os._exit(0)


threading.Thread(target=end_with_parent, daemon=True).start()
running = chdb.connect(path)  # keeps the engine running between connections
Server(socket, Connection).serve_forever()
