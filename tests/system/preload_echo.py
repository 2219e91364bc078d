# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Sockets with time-outs, as Python programs have them, on librspreload.so: an echo of a megabyte."""
import os
import socket
import threading

listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()


def serve():
    peer, _ = listener.accept()
    peer.settimeout(20)
    while data := peer.recv(65536):
        peer.sendall(data)
    peer.close()


server = threading.Thread(target=serve)
server.start()
client = socket.create_connection(listener.getsockname(), timeout=20)
assert os.readlink(f"/proc/self/fd/{client.fileno()}") == "/dev/null", "a plain socket"
client.setblocking(False)
try:
    client.recv(1)
    raise SystemExit("recv() has something")
except BlockingIOError:
    pass
client.settimeout(0.05)
try:
    client.recv(1)
    raise SystemExit("recv() has something")
except socket.timeout:
    pass

client.settimeout(20)
sent = os.urandom(1 << 20)


def send():
    client.sendall(sent)
    client.shutdown(socket.SHUT_WR)


sender = threading.Thread(target=send)
sender.start()
got = b""
while some := client.recv(65536):
    got += some
sender.join()
server.join()
assert got == sent, "other data"
