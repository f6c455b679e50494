"""A TCP proxy in front of a server, which can swallow what passes: the network's worst, without a network."""

import contextlib
import socket
import threading
from urllib.parse import urlsplit, urlunsplit

REQUESTS, ANSWERS = "requests", "answers"
BOTH = (REQUESTS, ANSWERS)


class Proxy:
    """Listens on loopback and passes everything to `target`, (host, port) or the path of a unix socket."""

    def __init__(self, target):
        self.target = target
        self._lost = frozenset()
        self._open = {way: threading.Event() for way in BOTH}
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._sockets = []
        self.heal()
        threading.Thread(target=self._accept, daemon=True).start()

    def lose(self, *ways):
        """What is sent from now on, either way or these ways, is lost, and nobody hears of it."""
        self._lost = frozenset(ways or BOTH)

    def hold(self, *ways):
        """What is sent is kept until the proxy heals, and arrives then: so a network that was cut for a while."""
        for way in ways or BOTH:
            self._open[way].clear()

    def heal(self):
        self._lost = frozenset()
        for gate in self._open.values():
            gate.set()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        try:
            if isinstance(self.target, str):
                server = socket.socket(socket.AF_UNIX)
                server.connect(self.target)
            else:
                server = socket.create_connection(self.target)
        except OSError:
            client.close()
            return
        self._sockets += [client, server]
        for way, source, sink in ((REQUESTS, client, server), (ANSWERS, server, client)):
            threading.Thread(target=self._pump, args=(way, source, sink), daemon=True).start()

    def _pump(self, way, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._open[way].wait()
                if way not in self._lost:
                    sink.sendall(data)
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.heal()
        for one in (self._listener, *self._sockets):
            one.close()


def through(proxy, url):
    """The same store, by way of the proxy."""
    parts = urlsplit(url)
    user = f"{parts.username}@" if parts.username else ""
    scheme = "valkey" if parts.scheme == "unix" else parts.scheme
    path = "/" if parts.scheme == "unix" else parts.path
    query = "&".join(one for one in parts.query.split("&") if not one.startswith("host="))
    return urlunsplit((scheme, f"{user}127.0.0.1:{proxy.port}", path, query, ""))


def target_of(url):
    """Where the server listens: a socket's path, or host and port."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return parts.path
    return (parts.hostname, parts.port)
