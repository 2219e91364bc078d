# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""
A Python program that has a device open and memory registered, of Python's own heap too, and makes
children in each way that Python has: multiprocessing by fork and by spawn, subprocess, os.fork().
What each process sees in its memory is its own, and the device works on in the parent, and in those
children that open it for themselves.

Usage: python_fork.py fork|spawn|subprocess|os_fork [ROUNDS]. Exits with 0 when all of it held.
"""
import ctypes
import mmap
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from ctypes import (CFUNCTYPE, POINTER, Structure, addressof, byref, c_char, c_int, c_size_t, c_uint8,
                    c_uint16, c_uint32, c_uint64, c_void_p)

SECONDS = 50
ACCESS = 1 | 2 | 4  # local write, remote write, remote read
POST_SEND = 25      # its place in struct ibv_context_ops
POLL_CQ = 11


class PortAttr(Structure):
    _fields_ = [("numbers", c_uint32 * 8), ("pkey_tbl_len", c_uint16), ("lid", c_uint16),
                ("rest", c_uint8 * 64)]


class Cap(Structure):
    _fields_ = [(n, c_uint32) for n in ("send_wr", "recv_wr", "send_sge", "recv_sge", "inline")]


class QpInit(Structure):
    _fields_ = [("context", c_void_p), ("send_cq", c_void_p), ("recv_cq", c_void_p),
                ("srq", c_void_p), ("cap", Cap), ("type", c_int), ("sig_all", c_int),
                ("xrc_domain", c_void_p)]


class Ah(Structure):
    _fields_ = [("dgid", c_uint64 * 2), ("flow_label", c_uint32), ("grh", c_uint8 * 4),
                ("dlid", c_uint16), ("sl", c_uint8), ("path_bits", c_uint8), ("rate", c_uint8),
                ("is_global", c_uint8), ("port_num", c_uint8)]


class QpAttr(Structure):
    _fields_ = [("state", c_int), ("cur_state", c_int), ("mtu", c_int), ("mig", c_int),
                ("qkey", c_uint32), ("rq_psn", c_uint32), ("sq_psn", c_uint32),
                ("dest_qp_num", c_uint32), ("access", c_int), ("cap", Cap), ("ah", Ah), ("alt", Ah),
                ("pkey_index", c_uint16), ("alt_pkey_index", c_uint16), ("notify", c_uint8),
                ("draining", c_uint8), ("rd_atomic", c_uint8), ("dest_rd_atomic", c_uint8),
                ("min_rnr_timer", c_uint8), ("port_num", c_uint8), ("timeout", c_uint8),
                ("retry_cnt", c_uint8), ("rnr_retry", c_uint8), ("room", c_uint8 * 64)]


class Mr(Structure):
    _fields_ = [("context", c_void_p), ("pd", c_void_p), ("addr", c_void_p), ("length", c_size_t),
                ("handle", c_uint32), ("lkey", c_uint32), ("rkey", c_uint32)]


class Qp(Structure):
    _fields_ = [("context", c_void_p), ("qp_context", c_void_p), ("pd", c_void_p),
                ("send_cq", c_void_p), ("recv_cq", c_void_p), ("srq", c_void_p),
                ("handle", c_uint32), ("qp_num", c_uint32)]


class Sge(Structure):
    _fields_ = [("addr", c_uint64), ("length", c_uint32), ("lkey", c_uint32)]


class SendWr(Structure):
    _fields_ = [("wr_id", c_uint64), ("next", c_void_p), ("sg_list", POINTER(Sge)),
                ("num_sge", c_int), ("opcode", c_int), ("flags", c_int), ("imm", c_uint32),
                ("remote_addr", c_uint64), ("rkey", c_uint32), ("room", c_uint32 * 16)]


class Wc(Structure):
    _fields_ = [("wr_id", c_uint64), ("status", c_int), ("rest", c_uint8 * 64)]


class Context(Structure):
    _fields_ = [("device", c_void_p), ("ops", c_void_p * 32)]


def library():
    lib = ctypes.CDLL("libibverbs.so.1", use_errno=True)
    for name in ("get_device_list", "open_device", "alloc_pd", "reg_mr", "create_cq", "create_qp"):
        getattr(lib, "ibv_" + name).restype = c_void_p
    return lib


class Device:
    """One with two RC QPs connected to each other, and what is registered there."""

    def __init__(self):
        self.lib = lib = library()
        n = c_int()
        devices = (c_void_p * 1).from_address(lib.ibv_get_device_list(byref(n)))
        assert n.value > 0, "no device"
        self.context = Context.from_address(lib.ibv_open_device(c_void_p(devices[0])))
        self.pd = c_void_p(lib.ibv_alloc_pd(byref(self.context)))
        self.cq = c_void_p(lib.ibv_create_cq(byref(self.context), 16, None, None, 0))
        assert self.pd.value and self.cq.value, "a PD and a CQ"
        port = PortAttr()
        assert not lib.ibv_query_port(byref(self.context), c_uint8(1), byref(port))
        self.qps = [self.qp(), self.qp()]
        for mine, other in (self.qps, self.qps[::-1]):
            self.connect(mine, other.qp_num, port.lid)
        self.post_send = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p)
        self.poll_cq = CFUNCTYPE(c_int, c_void_p, c_int, c_void_p)
        self.regions = {}

    def qp(self):
        init = QpInit(send_cq=self.cq, recv_cq=self.cq, cap=Cap(4, 4, 1, 1, 0), type=2)
        at = self.lib.ibv_create_qp(self.pd, byref(init))
        assert at, "a QP"
        return Qp.from_address(at)

    def connect(self, qp, dest, lid):
        steps = [(QpAttr(state=1, port_num=1, access=ACCESS), (0, 3, 4, 5)),
                 (QpAttr(state=2, mtu=3, dest_qp_num=dest, dest_rd_atomic=4,
                         min_rnr_timer=1, ah=Ah(dlid=lid, port_num=1)), (0, 7, 8, 12, 15, 17, 20)),
                 (QpAttr(state=3, timeout=18, retry_cnt=7, rnr_retry=7, rd_atomic=4),
                  (0, 9, 10, 11, 13, 16))]
        for attr, bits in steps:
            err = self.lib.ibv_modify_qp(byref(qp), byref(attr), sum(1 << b for b in bits))
            assert not err, (attr.state, err)

    def register(self, buf):
        at = addressof(buf)
        mr = self.lib.ibv_reg_mr(self.pd, c_void_p(at), c_size_t(len(buf)), ACCESS)
        assert mr, ctypes.get_errno()
        self.regions[at] = Mr.from_address(mr)

    def write(self, source, target):
        """The device copies one buffer to the other one, both registered here."""
        ours, theirs = self.regions[addressof(source)], self.regions[addressof(target)]
        sge = Sge(ours.addr, len(source), ours.lkey)
        wr = SendWr(wr_id=7, sg_list=ctypes.pointer(sge), num_sge=1, flags=2,
                    remote_addr=theirs.addr, rkey=theirs.rkey)
        bad, wc = c_void_p(), Wc()
        err = self.post_send(self.context.ops[POST_SEND])(
            addressof(self.qps[0]), addressof(wr), addressof(bad))
        assert not err, err
        while not self.poll_cq(self.context.ops[POLL_CQ])(self.cq, 1, addressof(wc)):
            pass
        assert (wc.wr_id, wc.status) == (7, 0), (wc.wr_id, wc.status)

    def close(self):
        for mr in self.regions.values():
            assert not self.lib.ibv_dereg_mr(byref(mr))
        for qp in self.qps:
            assert not self.lib.ibv_destroy_qp(byref(qp))
        assert not self.lib.ibv_destroy_cq(self.cq)
        assert not self.lib.ibv_dealloc_pd(self.pd)
        assert not self.lib.ibv_close_device(byref(self.context))


def pattern(seed, length):
    return bytes((seed * 31 + i * 7) & 0xff for i in range(256)) * (length // 256 + 1)


def buffers():
    """Beside objects of Python's in an arena of its heap, in the C library's, and mapped."""
    yield from (ctypes.create_string_buffer(300) for _ in range(6))
    yield from (ctypes.create_string_buffer(n) for n in (1000, 5000, 70000, 1 << 20))
    yield (c_char * 65536).from_buffer(mmap.mmap(-1, 65536, flags=mmap.MAP_PRIVATE))


def fill(buf, seed):
    ctypes.memmove(buf, pattern(seed, len(buf)), len(buf))


def holds(buf, seed):
    return bytes(buf) == pattern(seed, len(buf))[:len(buf)]


class Program:
    def __init__(self):
        self.device = Device()
        self.memory = list(buffers())
        self.source = [(c_char * len(b))() for b in self.memory]
        for buf in self.memory + self.source:
            self.device.register(buf)
        self.seed = 0
        self.store()

    def store(self):
        """What the device writes is there."""
        self.seed += 1
        for source, buf in zip(self.source, self.memory):
            fill(source, self.seed)
            self.device.write(source, buf)
        self.check(self.seed)

    def check(self, seed):
        for i, buf in enumerate(self.memory):
            assert holds(buf, seed), (i, seed)


program = None


def busy():
    """Objects that come and go, all over the heap."""
    for _ in range(20):
        assert len({str(i): [i] * (i % 50) for i in range(500)}) == 500


def child(seed):
    """In a forked child: its own copy, as it was; and what it stores there is nobody else's."""
    signal.alarm(SECONDS)
    program.check(seed)
    for buf in program.memory:
        fill(buf, seed + 100)
    busy()
    program.check(seed + 100)
    for buf in program.memory:
        fill(buf, seed)
    return seed


def fresh(seed):
    """A process that opens the device for itself, whether its parent has it or not."""
    signal.alarm(SECONDS)
    own = Program()
    own.store()
    busy()
    own.check(own.seed)
    own.device.close()
    return seed


def multiprocess(method, rounds):
    context = multiprocessing.get_context(method)
    for _ in range(rounds):
        with context.Pool(4) as pool:
            seed = program.seed
            if method == "fork":
                # The pool is there, with its own threads; these have the memory of before.
                assert pool.map(child, [seed] * 12, chunksize=1) == [seed] * 12
            results = [pool.apply_async(fresh, (n,)) for n in range(3)]
            program.store()
            assert [r.get(SECONDS) for r in results] == [0, 1, 2]
        program.check(program.seed)
        # One after the other beside threads that work, too.
        over = threading.Event()
        threads = [threading.Thread(target=lambda: [busy() for _ in iter(over.is_set, True)])
                   for _ in range(2)]
        for t in threads:
            t.start()
        many = [context.Process(target=child if method == "fork" else fresh, args=(program.seed,))
                for _ in range(3)]
        for p in many:
            p.start()
        if method != "fork":
            program.store()
        for p in many:
            p.join()
            assert p.exitcode == 0, p.exitcode
        over.set()
        for t in threads:
            t.join()
        program.store()


def by_subprocess(rounds):
    for n in range(rounds):
        for close in (True, False):
            many = [subprocess.Popen([sys.executable, "-c", f"print({i})"], close_fds=close,
                                     stdout=subprocess.PIPE) for i in range(4)]
            program.store()
            assert [p.communicate()[0] for p in many] == [b"%d\n" % i for i in range(4)]
        # A child that runs Python between fork and exec.
        subprocess.run(["true"], preexec_fn=lambda: child(program.seed), check=True)
        assert os.system("true") == 0
        assert os.waitstatus_to_exitcode(
            os.waitpid(os.posix_spawnp("true", ["true"], os.environ), 0)[1]) == 0
        program.store()


def by_os_fork(rounds):
    for n in range(rounds):
        pids = []
        for i in range(4):
            pid = os.fork()
            if not pid:
                try:
                    (fresh if i == 3 else child)(program.seed)
                    os._exit(0)
                finally:
                    os._exit(1)
            pids.append(pid)
            program.check(program.seed)
        assert [os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]) for p in pids] == [0] * 4
        program.store()


def main():
    global program
    way, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2
    signal.alarm(SECONDS * rounds)
    program = Program()
    if way == "subprocess":
        by_subprocess(rounds)
    elif way == "os_fork":
        by_os_fork(rounds)
    else:
        multiprocess(way, rounds)
    program.check(program.seed)
    program.device.close()


if __name__ == "__main__":
    main()
