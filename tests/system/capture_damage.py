#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Writes over the first two records of a tap (softhca/device/memory/tap.h), which have the largest
# payload: an operation that there is not, and a length that their slots have room for, but no packet
# has. Usage:
#   capture_damage.py PID-OF-CAPTURE PID-OF-DAEMON
import os
import struct
import sys

SLOTS, SLOT, APART = 32768, 256, 128
TAIL, OWNERS = 2 * APART, 3 * APART
RECORDS = (OWNERS + 8 * SLOTS + SLOT - 1) // SLOT * SLOT
HAVE, OP = 22, 24  # in a record
LARGEST = 17  # slots

# The capture alone of all processes maps the tap by itself, to write to it.
with open("/proc/%s/maps" % sys.argv[1]) as maps:
    lines = [line.split() for line in maps if line.split()[1] == "rw-s"]
if len(lines) != 1:
    sys.exit("%d mappings that may be the tap" % len(lines))
tap, inode = int(lines[0][2], 16), int(lines[0][4])
fds = "/proc/%s/fd/" % sys.argv[2]
name = next(fds + fd for fd in os.listdir(fds) if os.stat(fds + fd).st_ino == inode)
with open(name, "r+b", buffering=0) as memory:
    def at(offset, size):
        memory.seek(tap + offset)
        return memory.read(size)

    first = struct.unpack("<Q", at(TAIL, 8))[0] % SLOTS
    second = (first + LARGEST) % SLOTS
    for slot in (first, second):
        if struct.unpack("<H", at(RECORDS + slot * SLOT + HAVE, 2))[0] != 4096:
            sys.exit("no record of 4096 bytes at slot %d" % slot)
    memory.seek(tap + RECORDS + first * SLOT + OP)
    memory.write(b"\xff")
    memory.seek(tap + RECORDS + second * SLOT + HAVE)
    memory.write(struct.pack("<H", 4100))
