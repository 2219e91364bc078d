#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Reads what `softhca capture -w` wrote, without any code of softhca, and holds it against the
# formats of InfiniBand: lengths, pad, order of opcodes, PSNs, ICRC by zlib, VCRC. Usage:
#   capture_check.py FILE CHECK...
# CHECK: opcodes (each that opcodes.c sends is there), order (messages are whole and PSNs have no
# gap), whole (no packet is cut), cut N (no packet is longer than N), faults KIND... up to the next
# word that is none: packets with these comments, packets N, lost N, sent N (so many are there or
# lost), host LID (each packet is of this LID), qp N
import struct
import sys
import zlib

IMM, RETH, DETH, AETH, ATOMIC, ATOMICACK, XRC = 4, 16, 8, 4, 28, 8, 4
RC, UC, UD, XRC_SERVICE = 0x00, 0x20, 0x60, 0xA0
NAMES = {"dropped": "dropped", "corrupted": "wrong", "duplicated": "first of two", "late": "late", "reordered": "held back"}


def fail(text):
    print(text)
    sys.exit(1)


def blocks(data):
    """The packets, as (time, captured bytes, original length, comment); the lost ones."""
    packets, lost, at = [], None, 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if length % 4 or at + length > len(data) or struct.unpack_from("<I", data, at + length - 4)[0] != length:
            fail("block at %d: length %d" % (at, length))
        body = data[at + 8:at + length - 4]
        if kind == 0x0A0D0D0A and struct.unpack_from("<IHH", body)[0] != 0x1A2B3C4D:
            fail("byte order")
        if kind == 1 and struct.unpack_from("<H", body)[0] != 197:
            fail("link type")
        if kind == 6:
            interface, high, low, have, size = struct.unpack_from("<IIIII", body)
            record = body[20:20 + have]
            if have < 16 or record[8] != 0x15:
                fail("no ERF record")
            rlen, _, wlen = struct.unpack_from(">HHH", record, 10)
            if rlen != have or wlen + 16 != size:
                fail("ERF lengths %d %d of %d %d" % (rlen, wlen, have, size))
            options = body[20 + (have + 3) // 4 * 4:]
            comment = ""
            if options:
                number, n = struct.unpack_from("<HH", options)
                if number == 1:
                    comment = options[4:4 + n].decode()
            packets.append((high << 32 | low, record[16:], wlen, comment))
        if kind == 5:
            options = body[12:]
            while options:
                number, n = struct.unpack_from("<HH", options)
                if number == 5:
                    lost = struct.unpack_from("<Q", options, 4)[0]
                options = options[4 + (n + 3) // 4 * 4:]
        at += length
    return packets, lost


def divided(crc):
    for _ in range(8):
        crc = crc >> 1 ^ (0xD008 if crc & 1 else 0)
    return crc


# What eight steps make of each byte: captures have megabytes.
DIVIDED = [divided(byte) for byte in range(256)]


def vcrc(data, table=DIVIDED):
    crc = 0xFFFF
    for byte in data:
        crc = crc >> 8 ^ table[crc & 0xFF ^ byte]
    return ~crc & 0xFFFF


def icrc(frame, grh):
    data = bytearray(frame[:-6])
    if grh:
        data[:8] = b"\xff" * 8
        data[8] |= 0x0F
        data[9:12] = b"\xff" * 3
        data[15] = 0xFF
        data[52] = 0xFF
    else:
        data[0] |= 0xF0
        data[12] = 0xFF
    return zlib.crc32(bytes(data))


class Packet:
    def __init__(self, time, frame, size, comment):
        self.time, self.comment, self.whole = time, comment, len(frame) == size
        self.grh = frame[1] & 3 == 3
        self.dlid, self.words, self.slid = struct.unpack_from(">HHH", frame, 2)
        at = 48 if self.grh else 8
        if len(frame) < at + 12:
            fail("cut in the middle of its BTH")
        self.opcode = frame[at]
        self.pad = frame[at + 1] >> 4 & 3
        self.qp = struct.unpack_from(">I", frame, at + 4)[0] & 0xFFFFFF
        self.ack = frame[at + 8] >> 7
        self.psn = struct.unpack_from(">I", frame, at + 8)[0] & 0xFFFFFF
        self.service, self.op = self.opcode & 0xE0, self.opcode & 0x1F
        if self.service not in (RC, UC, UD, XRC_SERVICE):
            fail("opcode %#x" % self.opcode)
        self.response = 0x0D <= self.op <= 0x12
        at += 12
        if self.service == XRC_SERVICE and not self.response:
            at += XRC
        if self.service == UD:
            at += DETH
        self.dmalen = None
        if self.op in (0x06, 0x0A, 0x0B, 0x0C):
            if len(frame) >= at + RETH:
                self.dmalen = struct.unpack_from(">I", frame, at + 12)[0]
            at += RETH
        if self.op in (0x13, 0x14):
            at += ATOMIC
        if self.op in (0x0D, 0x0F, 0x10, 0x11, 0x12):
            self.syndrome = frame[at] if len(frame) > at else None
            at += AETH
        if self.op == 0x12:
            at += ATOMICACK
        if self.op in (0x03, 0x05, 0x09, 0x0B):
            if self.whole and frame[at:at + 4] != b"\1\2\3\4" and "opcodes" in sys.argv:
                fail("immediate data %s" % frame[at:at + 4].hex())
            at += IMM
        if self.words * 4 + 2 != size:
            fail("LRH's length %d, %d bytes" % (self.words, size))
        self.len = size - 6 - self.pad - at
        if self.len < 0:
            fail("opcode %#x: too short" % self.opcode)
        if self.grh and struct.unpack_from(">H", frame, 12)[0] != size - 2 - 48:
            fail("GRH's length")
        if not self.whole:
            return
        if any(frame[at + self.len:at + self.len + self.pad]):
            fail("pad is not zero")
        right = icrc(frame, self.grh) == struct.unpack_from("<I", frame, size - 6)[0]
        if right == ("wrong" in comment):
            fail("ICRC of opcode %#x, PSN %d: %s" % (self.opcode, self.psn, "right" if right else "wrong"))
        if vcrc(frame[:-2]) != struct.unpack_from("<H", frame, size - 2)[0]:
            fail("VCRC of opcode %#x, PSN %d" % (self.opcode, self.psn))


def opcodes(packets):
    want = {RC | o for o in range(0x15)} | {UC | o for o in range(0x0C)} | {UD | 4, UD | 5}
    want |= {XRC_SERVICE | o for o in range(0x15)}
    have = {p.opcode for p in packets}
    if have != want:
        fail("missing %s, not expected %s" % ([hex(o) for o in want - have], [hex(o) for o in have - want]))
    syndromes = {p.syndrome for p in packets if p.op == 0x11}
    if not {0x1F, 0x62} <= syndromes or not any(s & 0xE0 == 0x20 for s in syndromes):
        fail("syndromes %s" % [hex(s) for s in syndromes])
    if not any(p.grh for p in packets) or not all(p.service == UD for p in packets if p.grh):
        fail("GRH")


def order(packets):
    """Requests of each QP: each begins where the last one ended, and messages are whole."""
    expected, inside, left, reads, mtu = {}, {}, {}, {}, 256
    for p in packets:
        if p.service == UD:
            continue
        to = (p.slid, p.dlid, p.qp)
        if p.response:
            if 0x0D <= p.op <= 0x10:
                first = p.op in (0x0D, 0x10)
                begin = inside.get(("r",) + to) is None
                if first != begin or (p.op in (0x0D, 0x0E) and p.len != mtu) or p.len > mtu:
                    fail("READ response: opcode %#x, %d bytes" % (p.opcode, p.len))
                inside[("r",) + to] = None if p.op in (0x0F, 0x10) else True
            continue
        if to in expected and p.psn != expected[to]:
            # After an RNR NAK the requester begins with the same PSN again.
            if (p.psn + 1) % (1 << 24) != expected[to] or p.op != 4:
                fail("QP %#x: PSN %d, not %d" % (p.qp, p.psn, expected[to]))
        n = max(1, (p.dmalen + mtu - 1) // mtu) if p.op == 0x0C else 1
        expected[to] = (p.psn + n) % (1 << 24)
        if p.op >= 0x0C:
            continue
        base = 0 if p.op < 6 else 6
        place = {0: "first", 1: "middle", 2: "last", 3: "last", 4: "only", 5: "only"}[p.op - base]
        if (place in ("first", "only")) != (inside.get(to) is None):
            fail("QP %#x, PSN %d: %s" % (p.qp, p.psn, place))
        if place in ("first", "middle") and p.len != mtu or p.len > mtu or place == "last" and not p.len:
            fail("QP %#x, PSN %d: %s of %d bytes" % (p.qp, p.psn, place, p.len))
        inside[to] = True if place in ("first", "middle") else None
        if p.dmalen is not None:
            left[to] = p.dmalen
        if base:
            left[to] -= p.len
            if place in ("last", "only") and left[to]:
                fail("WRITE: %d bytes are missing" % left[to])
        if p.service != UC and place in ("last", "only") and not p.ack:
            fail("no acknowledgement was asked for")


def main():
    with open(sys.argv[1], "rb") as file:
        packets, lost = blocks(file.read())
    packets = [Packet(*p) for p in packets]
    words = sys.argv[2:]
    while words:
        word = words.pop(0)
        if word == "opcodes":
            opcodes(packets)
        elif word == "order":
            order(packets)
        elif word == "whole":
            if not packets or not all(p.whole for p in packets):
                fail("%d packets, of which some are cut" % len(packets))
        elif word == "cut":
            n = int(words.pop(0))
            if all(p.whole for p in packets):
                fail("nothing is cut to %d" % n)
        elif word == "packets":
            n = int(words.pop(0))
            if len(packets) != n:
                fail("%d packets, not %d" % (len(packets), n))
        elif word == "lost":
            n = words.pop(0)
            if lost is None or (n == "some") != (lost > 0):
                fail("lost: %s" % lost)
        elif word == "sent":
            n = int(words.pop(0))
            if lost is None or len(packets) + lost != n:
                fail("%d packets and %s lost, not %d" % (len(packets), lost, n))
        elif word == "host":
            n = int(words.pop(0))
            if not packets or not all(n in (p.slid, p.dlid) for p in packets):
                fail("a packet of other hosts, or none")
        elif word == "qp":
            n = int(words.pop(0), 0)
            if not any(p.qp == n for p in packets):
                fail("no packet to QP %#x" % n)
        elif word in NAMES:
            if not any(NAMES[word] in p.comment for p in packets):
                fail("no packet is %s: %s" % (word, {p.comment for p in packets}))
        elif word == "good":
            if any(p.comment for p in packets):
                fail("a packet has a comment")
        else:
            fail("unknown check %s" % word)
    print("%d packets, %s lost" % (len(packets), lost))


if __name__ == "__main__":
    main()
