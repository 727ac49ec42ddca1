"""A network line from one port of this machine to another, to be cut by freezing or killing it.

``python -m tests.faults.line FROM TO`` forwards each connection both ways until it is ended. Frozen it is
a cable that leads nowhere: connections stay open, and nothing comes through.
"""

from __future__ import annotations

import socket
import sys
import threading


def main(source: int, target: int) -> None:
    """Forward every connection to the port `source` to the port `target`."""
    with socket.create_server(("127.0.0.1", source)) as server:
        while True:
            here, _ = server.accept()
            try:
                there = socket.create_connection(("127.0.0.1", target))
            except OSError:
                here.close()
                continue
            for ends in ((here, there), (there, here)):
                threading.Thread(target=forward, args=ends, daemon=True).start()


def forward(source: socket.socket, target: socket.socket) -> None:
    """Send on all that comes from `source`; at its end close both."""
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:  # reset by one of the two: then the other learns it too
        pass
    finally:
        for end in (source, target):
            end.close()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
