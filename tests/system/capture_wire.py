# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""capture_wire.py INTERFACE FILE FROM

Takes the packets of RoCEv2, over IPv4 or IPv6, that pass an interface, as the kernel has them, until standard input ends. Then FILE, by softhca
capture -w on the machine with the address FROM, must have the same packets, byte by byte, with the right directions. Each
packet's ICRC is computed here from its definition. Prints how many packets there were.
"""
import collections
import selectors
import socket
import struct
import sys
import zlib

PORT = 4791
WIRE = 1  # the interface in the file


def roce(packet):
    """The IP packet without what follows it, or None."""
    if len(packet) < 28:
        return None
    if packet[0] == 0x45 and packet[9] == socket.IPPROTO_UDP:
        size = struct.unpack_from(">H", packet, 2)[0]
    elif packet[0] >> 4 == 6 and packet[6] == socket.IPPROTO_UDP:
        size = 40 + struct.unpack_from(">H", packet, 4)[0]
    else:
        return None
    return packet[:size] if struct.unpack_from(">H", packet, udp(packet) + 2)[0] == PORT else None


def udp(packet):
    """Where the header of UDP begins."""
    return 20 if packet[0] >> 4 == 4 else 40


def checksum(packet):
    """Of UDP: the network card's business."""
    return slice(udp(packet) + 6, udp(packet) + 8)


def source_of(packet):
    return packet[12:16] if packet[0] >> 4 == 4 else packet[8:24]


def icrc(packet):
    masked = bytearray(packet[:-4])
    if packet[0] >> 4 == 4:
        masked[1] = masked[8] = 0xFF  # type of service, time to live
        masked[10:12] = b"\xff\xff"  # checksum of IP
    else:
        masked[:4] = b"\x6f\xff\xff\xff"  # traffic class, flow label
        masked[7] = 0xFF  # hop limit
    masked[checksum(packet)] = b"\xff\xff"
    masked[udp(packet) + 12] = 0xFF  # BTH, reserved
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + masked))


def sniff(interface):
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0003))
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)  # as much of it as there may be
    raw.bind((interface, 0x0003))
    raw.setblocking(False)
    print("ready", flush=True)
    seen, wait = [], selectors.DefaultSelector()
    wait.register(raw, selectors.EVENT_READ)
    wait.register(sys.stdin, selectors.EVENT_READ)
    ended = False
    while not ended:
        ready = [key.fileobj for key, _ in wait.select()]
        ended = sys.stdin in ready and not sys.stdin.buffer.read1(4096)
        try:
            while True:
                packet = roce(raw.recv(65536))
                if packet:
                    seen.append(packet)
        except BlockingIOError:
            pass
    return seen


def recorded(path):
    """(direction, packet) of the packets of the wire."""
    data, at = open(path, "rb").read(), 0
    while at < len(data):
        kind, length = struct.unpack_from("=II", data, at)
        if kind == 6:
            interface, _, _, have, _ = struct.unpack_from("=IIIII", data, at + 8)
            option = at + 28 + (have + 3 & ~3)
            direction = 0
            while option < at + length - 4:
                number, size = struct.unpack_from("=HH", data, option)
                if number == 2:
                    direction = struct.unpack_from("=I", data, option + 4)[0]
                option += 4 + (size + 3 & ~3)
            if interface == WIRE:
                yield direction, data[at + 28 : at + 28 + have]
        at += length


def plain(packet):
    """Without what the kernel and the card choose: of IPv6 the flow label, too."""
    packet = bytearray(packet)
    packet[checksum(packet)] = b"\0\0"
    if packet[0] >> 4 == 6:
        packet[:4] = b"\x60\0\0\0"
    return bytes(packet)


def main():
    interface, path, source = sys.argv[1:]
    source = socket.inet_pton(socket.AF_INET6 if ":" in source else socket.AF_INET, source)
    seen = sniff(interface)
    # What this end's faults have damaged is wrong, and nothing else.
    wrong = [packet for packet in seen if icrc(packet) != packet[-4:]]
    assert wrong, "no packet was damaged"
    for packet in wrong:
        assert source_of(packet) == source, "wrong ICRC: " + packet.hex()
    kept = list(recorded(path))
    for direction, packet in kept:
        assert direction == (2 if source_of(packet) == source else 1), "wrong direction: " + packet.hex()
    passed, captured = (collections.Counter(map(plain, p)) for p in (seen, [packet for _, packet in kept]))
    for packet in list((passed - captured).elements())[:3]:
        print("only on the network:", packet.hex())
    for packet in list((captured - passed).elements())[:3]:
        print("only in the file:", packet.hex())
    print(len(seen))
    return passed != captured


sys.exit(main())
