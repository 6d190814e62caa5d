"""What may come to a port that anybody can reach.

    with Garbage(random.Random(1), ports) as garbage:
        garbage.throw_all()              # all kinds, and connections held open
        ...                              # a slow trickle goes on
"""

import contextlib
import socket
import threading

IDLE = 100
TRICKLE_S = 0.02  # between bytes

# What begins a message of CAF's protocol and says that nothing follows.
CAF_HEADER = b"\x01" + bytes(31)
CAF_HEADER_KIND = "CAF's header"

HTTP = (b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n")


def kinds(rng):
    """[(name, bytes)]"""
    return [
        ("random bytes", rng.randbytes(1 << 16)),
        ("HTTP", HTTP),
        (CAF_HEADER_KIND, CAF_HEADER),
        # Wherever a length stands in a frame, and in either order of bytes.
        ("a length of 4 GiB", b"\xff\xff\xff\xff" * 16),
        ("a length of 4 GiB in a TLS record", b"\x16\x03\x01\xff\xff\x01\xff"
         b"\xff\xff" + bytes(64)),
        ("nothing", b""),
    ]


class Garbage:
    """`without`: names of kinds that are not thrown."""

    def __init__(self, rng, ports, without=()):
        self._rng, self._ports, self._without = rng, ports, without
        self._open = contextlib.ExitStack()
        self._stop = threading.Event()
        self._thread = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _connect(self, port):
        connection = socket.create_connection(("127.0.0.1", port), timeout=10)
        return self._open.enter_context(connection)

    def throw(self, name_and_bytes, port):
        """Sends it, and keeps the connection open. Whoever is there may close
        it at any byte."""
        with contextlib.suppress(ConnectionError, socket.timeout):
            self._connect(port).sendall(name_and_bytes[1])

    def throw_all(self, idle=IDLE):
        for port in self._ports:
            for kind in kinds(self._rng):
                if kind[0] not in self._without:
                    self.throw(kind, port)
            for _ in range(idle):
                self.throw(("nothing", b""), port)
        self._thread = threading.Thread(target=self._trickle, daemon=True)
        self._thread.start()

    def _trickle(self):
        connections = []
        for port in self._ports:
            with contextlib.suppress(OSError):
                connections.append(self._connect(port))
        record = b"\x16\x03\x01\x02\x00" + bytes(512)
        for byte in record:
            for connection in list(connections):
                try:
                    connection.sendall(bytes([byte]))
                except OSError:
                    connections.remove(connection)
            if self._stop.wait(TRICKLE_S):
                return

    def close(self):
        self._stop.set()
        if self._thread:
            self._thread.join()
        self._open.close()
