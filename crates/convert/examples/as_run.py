#!/usr/bin/env python3
"""Makes of VMLINUX an image that agrees with the code that ran, where llvm-profgen would stumble.

    as_run.py VMLINUX SYSTEM_MAP DIR OUTPUT

DIR is that of `branch_records PROFILE VMLINUX DIR`. A kernel patches itself at boot (alternatives, jump labels,
static calls), so that runs of code pass what is a jump or a call in VMLINUX, or begin and end inside of its
instructions. Here these instructions become NOPs of the same length. Every one has to be at a site that the kernel's own
tables name; if one is not, that is an error. Only lengths are right in OUTPUT: it is for llvm-profgen, not to be run.
"""

import bisect
import collections
import re
import struct
import subprocess
import sys

NOPS = {1: "90", 2: "6690", 3: "0f1f00", 4: "0f1f4000", 5: "0f1f440000", 6: "660f1f440000", 7: "0f1f8000000000"}
CALL_AND_NOP = bytes.fromhex("e80000000090")
vmlinux, system_map, directory, output = sys.argv[1:]
image = bytearray(open(vmlinux, "rb").read())
(headers,), (count,) = struct.unpack_from("<Q", image, 0x20), struct.unpack_from("<H", image, 0x38)
segments = [struct.unpack_from("<IIQQQQ", image, headers + 56 * i) for i in range(count)]


def offset(address):
    for kind, _, at, virtual, _, size in segments:
        if kind == 1 and virtual <= address < virtual + size:
            return at + address - virtual
    sys.exit(f"{address:#x} is not in {vmlinux}")


def relative(address):
    return address + struct.unpack_from("<i", image, offset(address))[0]


symbols = {}
for line in open(system_map):
    address, _, name = line.split()
    symbols.setdefault(name, int(address, 16))
sites = []
for at in range(symbols["__alt_instructions"], symbols["__alt_instructions_end"] - 13, 14):
    sites.append((relative(at), image[offset(at) + 12], "alternative"))
for at in range(symbols["__start___jump_table"], symbols["__stop___jump_table"], 16):
    sites.append((relative(at), 5, "jump label"))
for at in range(symbols["__start_static_call_sites"], symbols["__stop_static_call_sites"], 8):
    sites.append((relative(at), 5, "static call"))
sites.sort()


def site(address):
    """What patches the instruction at `address`."""
    end = bisect.bisect_right(sites, (address, 1 << 32, ""))
    for start, length, what in sites[max(0, end - 6) : end]:
        if start <= address < start + length:
            return what
    sys.exit(f"{address:#x} is at no site that the kernel patches")


command = ["llvm-objdump-19", "-d", "--no-show-raw-insn", "--section=.text", vmlinux]
addresses, transfers = [], []
for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
    found = re.match(r"([0-9a-f]+):\s+(\S+)", line)
    if found:
        addresses.append(int(found[1], 16))
        if re.match("call|ret|jmp|iret|lret", found[2]):
            transfers.append(addresses[-1])


def size(address):
    return addresses[bisect.bisect_left(addresses, address) + 1] - address


def nop(start, length):
    image[offset(start) : offset(start) + length] = bytes.fromhex(NOPS[length])


def covered(ranges):
    """How often each instruction of the image was passed."""
    steps = collections.Counter()
    for start, last, times in ranges:
        steps[start] += times
        steps[last + 1] -= times
    found, level, at, order = {}, 0, 0, sorted(steps)
    for address in addresses:
        while at < len(order) and order[at] <= address:
            level += steps[order[at]]
            at += 1
        if level:
            found[address] = level
    return found


runs = []
lines = open(f"{directory}/branches.txt").read().splitlines()[1:]
for times, stack in zip(lines[::2], lines[1::2]):
    entries = [[int(address, 16) for address in entry.split("/")[:2]] for entry in stack.split()[1:]]
    if len(entries) == 2:
        runs.append((entries[1][1], entries[0][0], int(times)))
ranges = []
for line in open(f"{directory}/counts.txt").read().splitlines()[1:]:
    if "->" not in line and ":" in line:
        start, last, times = re.split("[-:]", line)
        ranges.append((int(start, 16), int(last, 16), int(times)))

passed = collections.Counter()
for start, last, times in runs:
    for transfer in transfers[bisect.bisect_left(transfers, start) : bisect.bisect_left(transfers, last)]:
        passed[transfer] += times
print(f"{len(passed)} jumps and calls that were passed:", dict(collections.Counter(map(site, passed))))
by_counts, by_runs = covered(ranges), covered(runs)
inside = [a for a in sorted({*by_counts, *by_runs}) if by_counts.get(a, 0) != by_runs.get(a, 0)]
print(f"{len(inside)} instructions inside of one that ran:", dict(collections.Counter(map(site, inside))))
known = set(addresses)
halves = {addresses[bisect.bisect_left(addresses, start) - 1] for start, _, _ in runs if start not in known}
print(f"{len(halves)} calls that became shorter:", dict(collections.Counter(map(site, halves))))
for transfer in passed:
    nop(transfer, size(transfer))
while inside:
    first = addresses[bisect.bisect_left(addresses, inside[0]) - 1]
    end = inside[0]
    while inside and inside[0] == end:
        end += size(inside.pop(0))
    nop(first, end - first)
for call in halves:
    if size(call) != len(CALL_AND_NOP):
        sys.exit(f"the call at {call:#x} is not of six bytes")
    image[offset(call) : offset(call) + len(CALL_AND_NOP)] = CALL_AND_NOP
open(output, "wb").write(image)
