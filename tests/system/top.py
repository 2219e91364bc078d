#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Types into `softhca top` as a person at a terminal of 80 x 24 does, and checks what stands on it. A
# TAP line for each check. Usage: top.py SOFTHCA INSTANCE
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

import pyte

softhca, instance = sys.argv[1:3]
tests = 0


class Top:
    def __init__(self, *options, term="linux"):
        self.screen = pyte.Screen(80, 24)
        self.stream = pyte.ByteStream(self.screen)
        self.all = b""
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ["TERM"] = term
            os.execv(softhca, [softhca, "top", "--delay", "100ms", *options, instance])
        self.resize(24)

    def resize(self, lines):
        self.screen.resize(lines, 80)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, 80, 0, 0))

    def take(self, seconds):
        """False at the end."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            new = os.read(self.fd, 65536)
        except OSError:
            return False
        self.all += new
        self.stream.feed(new)
        return bool(new)

    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    def until(self, what):
        """Whether the screen becomes as the function says."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if what(self.lines()):
                return True
            if not self.take(0.2):
                break
        print("# " + "\n# ".join(self.lines()))
        return False

    def type(self, keys):
        os.write(self.fd, keys)

    def status(self):
        end = time.monotonic() + 60
        while self.take(0.2) and time.monotonic() < end:
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def ok(name, good):
    global tests
    tests += 1
    print("%s %d - %s" % ("ok" if good else "not ok", tests, name), flush=True)


def view(name):
    return lambda lines: lines[1].startswith(name + "  ") and lines[2]


top = Top()
ok("the first table is of processes", top.until(view("processes")) and top.until(lambda l: "xrc_mesh" in l[3]))
ok("its numbers are rates", top.until(lambda l: float(l[3].split()[4].rstrip("kM")) > 0))
for key, name, row in ((b"d", "hcas", "host0/mlx4_0"), (b"o", "ports", "mlx4_0:1"), (b"x", "domains", "/xrcd1"), (b"n", "qps", "/0x")):
    top.type(key)
    ok("the key %s: %s" % (key.decode(), name), top.until(view(name)) and top.until(lambda l: any(row in line for line in l[3:])))
top.type(b"p")
# Rows of the view before may still stand below.
pids = lambda l: [int(word) for line in l[3:] for word in line.split()[:1] if word.isdigit()]
top.until(lambda l: l[1].startswith("processes") and len(pids(l)) == 4)
processes = sorted(pids(top.lines()))
# Keys as TERM=linux sends them: cursor down, end.
top.type(b"<<<<\x1b[B\r")
ok("enter on the second process: its QPs", top.until(lambda l: l[1].startswith("qps of process %d" % processes[1]) and "/0x" in l[3]))
top.type(b"\x7f")
ok("backspace goes back", top.until(view("processes")))
top.type(b"d\r")
ok("enter on an HCA: its ports", top.until(lambda l: l[1].startswith("ports of HCA host") and ":1" in l[3]))
top.type(b"\r")
ok("and on a port: its QPs", top.until(lambda l: l[1].startswith("qps of port host") and "/0x" in l[3]))
top.type(b"n<<<<")
numbers = lambda l: [(line[:5], int(line.split("/0x")[1].split()[0], 16)) for line in l[3:] if "/0x" in line]
ok("by name, numbers in it in order", top.until(lambda l: len(numbers(l)) > 2 and numbers(l) == sorted(numbers(l))))
top.type(b"r")
ok("and the other way round", top.until(lambda l: len(numbers(l)) > 2 and numbers(l) == sorted(numbers(l), reverse=True)))
top.type(b" ")
ok("held", top.until(lambda l: "[held]" in l[1]))
top.type(b" h")
ok("help", top.until(lambda l: any("HCAs (devices)" in line for line in l)))
top.type(b"p")
top.resize(5)
os.kill(top.pid, signal.SIGWINCH)
ok("a terminal of five lines", top.until(lambda l: l[1].startswith("processes") and l[4]))
# Four rows, of which two fit.
top.type(b"<<<<\x1b[4~")
ok("shows the last rows, too", top.until(lambda l: pids(l) == processes[2:]))
top.type(b"q")
ok("the key q ends it with 0", top.status() == 0)

# The screen says so where the daemon does not answer, and keys work all the same.
with open(os.environ["SOFTHCA_DIR"] + "/softhca/" + instance + "/pid") as file:
    daemon = int(file.read())
def quits(top):
    """The message is of a top that waits for the answer: it comes after 10 seconds."""
    top.type(b"q")
    return top.status() == 0 and b"did not answer" not in top.all
top = Top()
top.until(view("processes"))
os.kill(daemon, signal.SIGSTOP)
ok("a stopped daemon is told", top.until(lambda l: "[the daemon does not answer]" in l[1]))
top.type(b"o")
ok("keys work meanwhile", top.until(lambda l: l[1].startswith("ports") and "mlx4_0:1" in l[3]))
ok("and q ends it", quits(top))
top = Top()
ok("one that was stopped before is told", top.until(lambda l: "the daemon of %s does not answer" % instance in l[0]))
ok("and q ends that", quits(top))
top = Top()
top.until(lambda l: "does not answer" in l[0])
os.kill(daemon, signal.SIGCONT)
ok("it goes on with the daemon", top.until(view("processes")))
top.type(b"q")
ok("and ends", top.status() == 0)

top = Top("--count", "2", "--view", "hcas")
ok("--count ends it", top.until(view("hcas")) and top.status() == 0)
# Of the terminals' ways to give the screen back, that of xterm, which pyte does not draw well.
top = Top(term="xterm")
top.until(lambda l: b"PID" in top.all)
os.kill(top.pid, signal.SIGTERM)
ok("so does SIGTERM, and gives the screen back", top.status() == 0 and b"\x1b[?1049l" in top.all)
top = Top(term="nothing-known")
ok("an unknown terminal is a failure that says what to do", top.status() == 125 and b"add --batch" in top.all)

top = Top(term="xterm")
top.until(lambda l: b"PID" in top.all)
os.system("%s stop %s" % (softhca, instance))
ok("an instance that ends is a failure", top.status() == 125)
ok("whose message comes after the screen", b"softhca: " in top.all.split(b"\x1b[?1049l")[-1] or print(top.all[-400:]))
print("1..%d" % tests)
