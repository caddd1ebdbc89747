"""Several traces in one .pftrace, one put behind the other: each keeps its own processes, devices and correlations."""
import gzip
import shutil
import subprocess

from files_test import FILES
from files_test import FieldCase
from files_test import harness

KERNELS = ("select k.name, count(*), sum(d.duration), min(t.device), max(t.device), min(t.process), max(t.process) from tacho.dispatch d "
           "join tacho.kernel k on k.id = d.dim join tacho.track t on t.id = d.track group by k.name order by k.name")


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def packet(*fields):
    return field(1, b"".join(field(number, value) for number, value in fields))


def of_service(uuid, tid, name, start=1000, first=True, config=True):
    """A slice on a thread of process 9, as Perfetto's service writes a trace: its UUID (before Perfetto 28: none) and configuration first."""
    thread = field(1, 5) + field(4, field(1, 9) + field(2, tid))
    head = [packet((89, field(1, uuid)))] if uuid else []
    head += [packet((33, field(2, b"")))] if config else []
    return b"".join(head + [packet((10, 3), (60, thread), *([(87, 1), (41, 1)] if first else [(41, 1)])),
                            packet((10, 3), (8, start), (11, field(9, 1) + field(11, 5) + field(23, name))),
                            packet((10, 3), (8, start + 100), (11, field(9, 2) + field(11, 5)))])


class Documents(FieldCase):
    def exported(self, source, name):
        self.tacho("export", "-f", "pftrace", "-o", name, "--overwrite", source)
        return (self.folder / name).read_bytes()

    def notes(self, path):
        return [text for (text,) in self.query(path, "select text from tacho.note")]

    def check_two_ranks(self, path):
        found = self.query(path, KERNELS)
        self.assertEqual([row[:3] for row in found], [["k_rank0", 3, 900_000], ["k_rank1", 3, 1_500_000]])
        (_, _, _, *first), (_, _, _, *second) = found
        self.assertEqual((first[0], first[2], second[0], second[2]), (first[1], first[3], second[1], second[3]))
        self.assertNotEqual(first[0], second[0])
        self.assertNotEqual(first[2], second[2])
        self.assertEqual(self.query(path, "select pid, rank, run from tacho.process order by rank"), [[83, 0, 0], [83, 1, 1]])
        self.assertIn("the file holds 2 traces, one behind the other; each has its own processes and devices", self.notes(path))
        rows = {name: row["TotalDeviceNs"] for name, row in self.table(path, "operator").items()}
        self.assertEqual((rows["aten::mm"], rows["aten::softmax"]), (900_000, 1_500_000))

    def test_two_ranks_with_one_pid(self):
        one, other = (self.exported(FILES / f"samepid_rank{rank}.json", f"r{rank}.pftrace") for rank in (0, 1))
        self.check_two_ranks(self.written("both.pftrace", one + other))
        # As members of one gzip file.
        self.check_two_ranks(self.written("both.pftrace.gz", gzip.compress(one) + gzip.compress(other)))
        if shutil.which("zstd"):
            frames = [subprocess.run(["zstd", "-c"], input=text, capture_output=True, check=True).stdout for text in (one, other)]
            self.check_two_ranks(self.written("both.pftrace.zst", b"".join(frames)))
        # One is still one.
        path = self.folder / "r0.pftrace"
        self.assertEqual([row[:3] for row in self.query(path, KERNELS)], [["k_rank0", 3, 900_000]])
        self.assertEqual([note for note in self.notes(path) if "traces" in note], [])

    def test_two_ranks_that_were_merged_before(self):
        self.tacho("merge", FILES / "samepid_rank0.json", FILES / "samepid_rank1.json", "-o", "m.tacho")
        self.exported("m.tacho", "m.pftrace")
        self.assertEqual(self.query(self.folder / "m.pftrace", "select rank, run from tacho.process order by rank"), [[0, 0], [1, 1]])

    def test_a_second_trace_that_is_cut(self):
        one, other = (self.exported(FILES / f"samepid_rank{rank}.json", f"r{rank}.pftrace") for rank in (0, 1))
        for tenth in range(10):
            path = self.written("cut.pftrace", one + other[:len(other) * tenth // 10])
            found = {row[0]: row[1:3] for row in self.query(path, KERNELS)}
            self.assertEqual(found["k_rank0"], [3, 900_000], tenth)

    def test_traces_of_the_service(self):
        ask = "select l.name, d.start, d.duration, t.process, h.tid from tacho.marker d join tacho.label l on l.id = d.dim join tacho.track t on "\
              "t.id = d.track join tacho.thread h on h.id = t.thread order by l.name"
        both = of_service(b"a" * 16, 11, "first") + of_service(b"b" * 16, 12, "second", 500)
        same = of_service(b"a" * 16, 11, "first") + of_service(b"a" * 16, 12, "second", 500)
        old = of_service(b"", 11, "first") + of_service(b"", 12, "second", 500)
        bare = of_service(b"", 11, "first", config=False) + of_service(b"", 12, "second", 500, config=False)
        for text in (both, same, old, bare):
            found = self.query(self.written("t.pftrace", text), ask)
            self.assertEqual([row[:3] + row[4:] for row in found], [["first", 1000, 100, 11], ["second", 500, 100, 12]])
            self.assertNotEqual(found[0][3], found[1][3])
        # A cleared state is no new trace.
        one = of_service(b"a" * 16, 11, "first") + of_service(b"", 11, "second", 2000, first=False, config=False)
        found = self.query(self.written("t.pftrace", one), ask)
        self.assertEqual([row[0] for row in found], ["first", "second"])
        self.assertEqual(found[0][3], found[1][3])

    def test_many_traces(self):
        path = self.written("t.pftrace", b"".join(of_service(b"%016d" % number, 11, f"s{number % 2}", config=False) for number in range(1500)))
        self.assertEqual(self.query(path, "select count(*) from tacho.marker"), [[1500]])
        self.assertIn("the file holds more than 1024 traces: those behind are read as if they were the last one's", self.notes(path))


if __name__ == "__main__":
    harness.main()
