#!/usr/bin/env python3
"""Reads a memory snapshot of many allocations as PyTorch pickles them, and shows who held the peak: time, and memory of tacho.

    bench/memory.py build/bin/tacho [allocations, default 10 million]

Ends with 1 when tacho took more than 256 MiB, or found another peak than the one that was written."""
import pathlib
import resource
import struct
import subprocess
import sys
import tempfile
import time

MOST = 256  # MiB


def text(word):
    return b"\x8c" + bytes([len(word)]) + word.encode() + b"\x94"


class Writer:
    """Python's protocol 4 by hand: pickle.dump() would take the whole history into memory."""

    def __init__(self, file):
        self.file, self.memo, self.known = file, 0, {}

    def put(self, data, memoized=0):
        self.file.write(data)
        self.memo += memoized

    def word(self, word):
        if word in self.known:
            return b"j" + struct.pack("<I", self.known[word])
        self.known[word] = self.memo
        self.memo += 1
        return text(word)

    def number(self, value):
        return b"\x8a\x08" + struct.pack("<q", value)

    def event(self, action, address, size, time_us, frames):
        data = [b"}\x94("]
        self.memo += 1
        for key, value in (("action", None), ("addr", address), ("size", size), ("stream", 0), ("time_us", time_us)):
            data.append(self.word(key))
            data.append(self.word(action) if value is None else self.number(value))
        data.append(self.word("frames"))
        data.append(b"]\x94(")
        self.memo += 1
        for frame in frames:
            data.append(self.frame(frame))
        data.append(b"eu")
        self.file.write(b"".join(data))

    def frame(self, line):
        key = ("frame", line)
        if key in self.known:
            return b"j" + struct.pack("<I", self.known[key])
        self.known[key] = self.memo
        self.memo += 1
        data = b"}\x94("
        for name, value in (("name", f"f{line % 50}"), ("filename", f"/home/u/file{line % 7}.py")):
            data += self.word(name) + self.word(value)
        return data + self.word("line") + b"M" + struct.pack("<H", line) + b"u"


def write(path, count):
    """Steps of 1000 allocations that are freed again, above some that stay. Returns the peak."""
    live = peak = 0
    with open(path, "wb", buffering=1 << 20) as file:
        writer = Writer(file)
        writer.put(b"\x80\x04}\x94(", 1)
        writer.put(writer.word("segments") + b"]\x94", 1)
        writer.put(writer.word("device_traces") + b"]\x94]\x94(", 2)
        now, stay = 1_700_000_000_000_000, 0x7f0000000000
        for step in range(count // 1000):
            held = []
            for i in range(1000):
                now += 2
                size = 512 * (1 + (i * 7919 + step) % 4096)
                keep = i == 0 and step < 1000
                address = stay + step * 4194304 if keep else 0x6f0000000000 + i * 4194304
                writer.event("alloc", address, size, now, [i % 400 + 1, i % 13 + 1, 1])
                live += size
                if not keep:
                    held.append((address, size))
            peak = max(peak, live)
            for address, size in held:
                now += 1
                writer.event("free_completed", address, size, now, [step % 5 + 1, 1])
                live -= size
            if step % 500 == 499:
                writer.put(b"e(")
        writer.put(b"eau.")
    return peak


def main():
    tacho, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "snapshot.pickle"
        peak = write(path, count)
        print(f"{count} allocations, {path.stat().st_size / 1e6:.0f} MB")
        begin = time.monotonic()
        result = subprocess.run([tacho, "memory", str(path), "--output-format", "csv", "--table", "places"], capture_output=True, check=True)
        seconds = time.monotonic() - begin
        used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        header, row = (line.split(",") for line in result.stdout.decode().replace('"', "").splitlines()[:2])
        found = int(row[header.index("PeakBytes") - len(header)])
        print(f"{seconds:.1f} s, {used:.0f} MiB (at most {MOST}), peak {found} (written {peak})")
        sys.exit(0 if used <= MOST and found == peak else 1)


if __name__ == "__main__":
    main()
