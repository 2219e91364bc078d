# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Checks a time line of softhca trace: trace_check.py FILE [packets] [SENDS RECEIVES]

It loads; times of each track grow, and begin at 0 or later; verbs of a thread lie behind or within
each other; each completion has an arrow from the post of its request, which comes before it, and no
post has two. With numbers: so many sends and receives have completed, in all.
"""
import collections
import json
import re
import sys

events = json.load(open(sys.argv[1]))["traceEvents"]
words = sys.argv[2:]


def fail(what):
    sys.exit(f"{sys.argv[1]}: {what}")


tracks = collections.defaultdict(list)
for e in events:
    if e["ph"] in "Xi":
        tracks[e["pid"], e["tid"]].append(e)
for track in tracks.values():
    last = 0
    open_until = [float("inf")]
    for e in track:
        if e["ts"] < last:
            fail(f"{e} comes before the one in front of it")
        last = e["ts"]
        if e["ph"] != "X":
            continue
        end = e["ts"] + e["dur"]
        while e["ts"] + 0.0005 > open_until[-1]:
            open_until.pop()
        if end > open_until[-1] + 0.002:
            fail(f"{e} overlaps the one in front of it")
        open_until.append(end)

named = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
if set(tracks) - named:
    fail(f"no name for {set(tracks) - named}")

posts = ("ibv_post_send", "ibv_post_recv", "ibv_post_srq_recv")
verbs = [e for e in events if e["ph"] == "X"]

# An arrow begins where the post does, and ends at the end of the poll.
def last_of(e):
    return round(e["ts"] + max(e["dur"] - 0.001, 0), 3)


at = {(e["pid"], e["tid"], e["ts"]): e for e in verbs if e["name"] in posts}
ended = {(e["pid"], e["tid"], last_of(e)): e for e in verbs if e["name"] == "ibv_poll_cq" and "empty" not in e["args"]}
begins = {e["id"]: e for e in events if e["ph"] == "s"}
ends = {e["id"]: e for e in events if e["ph"] == "f"}
if set(begins) != set(ends):
    fail("arrows without one of their ends")
arrows = collections.Counter()
for number, s in begins.items():
    f = ends[number]
    post, poll = at.get((s["pid"], s["tid"], s["ts"])), ended.get((f["pid"], f["tid"], f["ts"]))
    if not post or post["name"] not in posts or not poll or poll["name"] != "ibv_poll_cq":
        fail(f"an arrow from {post} to {poll}")
    # Another thread's clock may read the same.
    if s["ts"] > f["ts"] + 0.001:
        fail(f"{poll} before {post}")
    arrows[post["name"] == "ibv_post_send"] += 1
    arrows["to", f["pid"], f["tid"], f["ts"]] += 1

done = 0
for poll in verbs:
    if poll["name"] != "ibv_poll_cq" or "empty" in poll["args"]:
        continue
    n = int(re.match(r"\d+", poll["args"]["result"]).group())
    there = arrows["to", poll["pid"], poll["tid"], last_of(poll)]
    if there != n:
        fail(f"{poll} has {n} completions and {there} arrows")
    done += n

if words and words[0] == "packets":
    words.pop(0)
    packets = [e for e in events if e["ph"] == "i"]
    sent = [e for e in verbs if e["name"] == "ibv_post_send"]
    first = min(e["ts"] for e in sent)
    last = max(e["ts"] + e["dur"] for e in verbs)
    if not packets or not all(first <= e["ts"] <= last for e in packets):
        fail(f"{len(packets)} packets, from {first} to {last}")
elif any(e["ph"] == "i" for e in events):
    fail("packets")
if words:
    wanted = [int(w) for w in words]
    if [arrows[True], arrows[False]] != wanted or done != sum(wanted):
        fail(f"{arrows[True]} sends and {arrows[False]} receives, not {wanted}")
