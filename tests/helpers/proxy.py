"""A TCP proxy in front of a server, which can swallow what passes: the network's worst, without a network."""

import contextlib
import socket
import threading


class Proxy:
    """Listens on loopback and passes everything to `target`, (host, port) or the path of a unix socket."""

    def __init__(self, target):
        self.target = target
        self.cut = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._sockets = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with contextlib.suppress(OSError):
            if isinstance(self.target, str):
                server = socket.socket(socket.AF_UNIX)
                server.connect(self.target)
            else:
                server = socket.create_connection(self.target)
            self._sockets += [client, server]
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if not self.cut.is_set():  # what is sent during a cut is lost, and nobody hears of it
                    sink.sendall(data)
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self):
        for one in (self._listener, *self._sockets):
            one.close()
