"""Sends garbage to a port, as any program that can reach it might.

    with Garbage(random.Random(1), ports) as garbage:
        garbage.throw_all()              # all kinds; keeps connections open
        ...                              # sends single bytes until the end
"""

import contextlib
import socket
import threading

IDLE = 100
TRICKLE_S = 0.02  # time between single bytes

# Header of a message of CAF's protocol without a payload.
CAF_HEADER = b"\x01" + bytes(31)
CAF_HEADER_KIND = "CAF's header"

HTTP = (b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n")


def kinds(rng):
    """Returns [(name, bytes)]."""
    return [
        ("random bytes", rng.randbytes(1 << 16)),
        ("HTTP", HTTP),
        (CAF_HEADER_KIND, CAF_HEADER),
        # A length at any place of a frame, in either byte order.
        ("a length of 4 GiB", b"\xff\xff\xff\xff" * 16),
        ("a length of 4 GiB in a TLS record", b"\x16\x03\x01\xff\xff\x01\xff"
         b"\xff\xff" + bytes(64)),
        ("nothing", b""),
    ]


class Garbage:
    """Connections that send garbage; `without` names kinds to leave out."""

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
        """Sends one kind, and keeps the connection open. The other end may
        close it after any byte."""
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
