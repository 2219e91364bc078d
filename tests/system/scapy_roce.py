# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""scapy_roce.py check FILE | send FROM TO QPN

With scapy's own idea of RoCEv2, over IPv4. check: up to 200 packets of each opcode on the wire's interface of a capture have the
bytes that scapy gives them when it builds them anew, ICRC included; prints how many there were. send: sends packets that scapy has built to a QP at
another address, as softhca and as cards send them, then a notification of congestion, and then one with a wrong bit; prints
how many were right.
"""
import collections
import logging
import socket
import sys

logging.getLogger("scapy.runtime").setLevel(logging.ERROR)
from scapy.contrib.roce import AETH, BTH, cnp  # noqa: E402
from scapy.layers.inet import IP, UDP  # noqa: E402
from scapy.packet import Raw, raw  # noqa: E402
from scapy.utils import RawPcapNgReader  # noqa: E402

PORT = 4791
RAW_IP = 101  # the link type of the wire's interface
BTH_AT = 28  # behind the headers of IPv4 and UDP; its first byte is the opcode
MOST = 200  # packets of an opcode
XRC = 0xA0


def check(name):
    seen = collections.Counter()
    for data, about in RawPcapNgReader(name):
        # scapy takes milliseconds for a packet.
        if about.linktype != RAW_IP or data[0] != 0x45 or seen[data[BTH_AT]] == MOST:
            continue
        packet = IP(data)
        if BTH not in packet:
            sys.exit("scapy sees no BTH in " + data.hex())
        # The ICRC is at the end, whatever stands between.
        del packet[BTH].icrc
        again = raw(packet)
        if again != data:
            sys.exit("scapy has %s for\n%s" % (again.hex(), data.hex()))
        seen[packet[BTH].opcode] += 1
    print(" ".join("%#04x:%d" % one for one in sorted(seen.items())))


def built(way, packet):
    """The bytes behind the headers of IP and UDP."""
    return raw(way / packet)[BTH_AT:]


def send(source, to, qpn):
    sent = 0
    # From softhca's port with identification 0, which is what a socket sends; and as cards do, whose identification nobody sees.
    for port, number in ((PORT, 0), (51234, 0x718C)):
        way = IP(src=source, dst=to, id=number, flags="DF") / UDP(sport=port, dport=PORT, chksum=0)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER, IP_PMTUDISC_DO
            s.bind((source, port))
            packets = [
                BTH(opcode="RC_SEND_ONLY", migreq=1, dqpn=qpn, ackreq=1, psn=0x123456, padcount=3) / Raw(b"hello\0\0\0"),
                BTH(opcode="RC_SEND_FIRST", dqpn=qpn, psn=0xFFFFFF) / Raw(bytes(range(256)) * 4),
                BTH(opcode="RC_ACKNOWLEDGE", dqpn=qpn, psn=7) / AETH(syndrome=0x1F, msn=1),
                BTH(opcode="UC_SEND_LAST", dqpn=qpn, psn=1) / Raw(b"8 bytes!"),
                BTH(opcode=XRC + 4, dqpn=qpn, psn=1) / Raw(b"\0\0\0\x428 bytes!"),
                cnp(qpn),
            ]
            for packet in packets:
                s.sendto(built(way, packet), (to, PORT))
                sent += 1
    way = IP(src=source, dst=to, id=0, flags="DF") / UDP(sport=PORT, dport=PORT, chksum=0)
    wrong = bytearray(built(way, packets[0]))
    wrong[14] ^= 4
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.IPPROTO_IP, 10, 2)
        s.bind((source, PORT))
        s.sendto(wrong, (to, PORT))
    print(sent)


if sys.argv[1] == "check":
    check(sys.argv[2])
else:
    send(sys.argv[2], sys.argv[3], int(sys.argv[4], 0))
