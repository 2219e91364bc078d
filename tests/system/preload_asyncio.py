# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Python's asyncio on librspreload.so, with poll(): a server and a client in one loop. What asyncio takes by itself is epoll."""
import asyncio
import os
import selectors


def check(sock):
    assert os.readlink(f"/proc/self/fd/{sock.fileno()}") == "/dev/null", "a plain socket"


async def serve(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    check(server.sockets[0])
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    check(writer.get_extra_info("socket"))
    sent = os.urandom(1 << 20)
    writer.write(sent)
    writer.write_eof()
    assert await reader.read() == sent, "other data"
    writer.close()
    server.close()


loop = asyncio.SelectorEventLoop(selectors.PollSelector())
loop.run_until_complete(asyncio.wait_for(main(), 30))
