"""Files in other encodings, compressed or in archives: read as what they hold, or named for what they are."""
import bz2
import gzip
import io
import json
import lzma
import os
import sqlite3
import struct
import tarfile
import zipfile
import zlib

from files_test import FILES
from files_test import FieldCase
from files_test import TACHO
from files_test import harness

EVENTS = [{"ph": "X", "cat": "kernel", "name": f"k{i}", "pid": 0, "tid": 7, "ts": 100 + 10 * i, "dur": 5,
           "args": {"device": 0, "stream": 7}} for i in range(3)]
TEXT = json.dumps({"traceEvents": EVENTS})
CSV = ("\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Dispatch_Id\",\"Kernel_Name\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n"
       + "".join(f'"KERNEL_DISPATCH","GPU 0",1,{i},"größe_{i}",{i},{1000 + i * 100},{1050 + i * 100}\n' for i in range(1, 4)))


def zipped(files, method=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tarred(files, mode="w", form=tarfile.PAX_FORMAT):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode, format=form) as archive:
        for name, content in files.items():
            content = content.encode() if isinstance(content, str) else content
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def frame(data, window_bits=20):
    """A Zstandard frame with these bytes as they are: blocks may be stored."""
    pieces = [data[i:i + 100_000] for i in range(0, len(data), 100_000)] or [b""]
    blocks = b"".join((int(i == len(pieces) - 1) | len(piece) << 3).to_bytes(3, "little") + piece for i, piece in enumerate(pieces))
    return b"\x28\xb5\x2f\xfd\x00" + bytes([(window_bits - 10) << 3]) + blocks


class Encodings(FieldCase):
    def kernels(self, name, content):
        return [name for (name,) in self.query(self.written(name, content), "select name from tacho.dispatch order by start")]

    def refused(self, name, content):
        self.info(self.written(name, content), code=1)
        return self.said

    def test_json_by_its_byte_order_mark(self):
        for form in ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"):
            mark = "\ufeff" if form == "utf-16-be" else ""
            self.assertEqual(self.kernels(f"{form}.json", (mark + TEXT).encode(form)), ["k0", "k1", "k2"], form)
        self.assertEqual(self.kernels("bare_be.json", TEXT.encode("utf-16-be")), ["k0", "k1", "k2"])
        self.assertEqual(self.kernels("list.json", json.dumps(EVENTS).encode("utf-16")), ["k0", "k1", "k2"])
        self.assertEqual(self.kernels("packed.json.gz", gzip.compress(TEXT.encode("utf-8-sig"))), ["k0", "k1", "k2"])

    def test_characters_of_utf16(self):
        text = json.dumps({"traceEvents": [dict(EVENTS[0], name="größe \U0001f680")]}, ensure_ascii=False)
        self.assertEqual(self.kernels("far.json", text.encode("utf-16")), ["größe \U0001f680"])
        odd = text.replace("\U0001f680", "Q").encode("utf-16").replace("Q".encode("utf-16-le"), b"\x80\xd8")
        self.assertEqual(self.kernels("half.json", odd), ["größe \ufffd"])

    def test_csv_by_its_byte_order_mark(self):
        names = ["größe_1", "größe_2", "größe_3"]
        for form in ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"):
            self.assertEqual(self.kernels(f"{form}_kernel_trace.csv", CSV.encode(form)), names, form)
        self.assertEqual(self.kernels("packed_kernel_trace.csv.gz", gzip.compress(CSV.encode("utf-16"))), names)

    def test_utf16_that_begins_with_a_line(self):
        for form in ("utf-16-le", "utf-16-be"):
            self.assertEqual(self.kernels("line.json", ("\r\n" + TEXT).encode(form)), ["k0", "k1", "k2"])

    def test_csv_with_other_ends_of_lines(self):
        names = self.kernels("t_kernel_trace.csv", CSV)
        self.assertGreater(len(names), 1)
        for text in (CSV.replace("\n", "\r"), CSV.replace("\n", "\r\n"), "\n\n" + CSV, "\r\n" + CSV.replace("\n", "\r\n")):
            self.assertEqual(self.kernels("t_kernel_trace.csv", text), names)

    def test_utf32_is_named(self):
        self.assertIn("UTF-32", self.refused("wide.json", TEXT.encode("utf-32")))

    def test_members_of_gzip(self):
        data = TEXT.encode()
        packed = gzip.compress(data[:40]) + gzip.compress(data[40:])
        self.assertEqual(self.kernels("two.json.gz", packed), ["k0", "k1", "k2"])
        self.assertEqual(self.kernels("padded.json.gz", packed + bytes(512)), ["k0", "k1", "k2"])
        self.assertEqual(self.kernels("two_kernel_trace.csv.gz", gzip.compress(CSV[:250].encode()) + gzip.compress(CSV[250:].encode())),
                         ["größe_1", "größe_2", "größe_3"])

    def test_bytes_behind_gzip_are_told(self):
        for name, text in (("t.json.gz", TEXT), ("t_kernel_trace.csv.gz", CSV)):
            packed = gzip.compress(text.encode())
            path = self.written(name, packed + b"JUNK" * 100_000)
            said = f"bytes behind the gzip data, from byte {len(packed)} of the file on, are not read"
            self.assertIn(said, " ".join(self.info(path).split()))
            self.assertEqual(len(self.query(path, "select name from tacho.dispatch")), 3)
            for end in (b"", bytes(512)):
                self.assertNotIn("behind the gzip data", self.info(self.written(name, packed + end)))

    def test_zstandard(self):
        text, rows = TEXT.encode(), CSV.encode()
        self.assertEqual(self.kernels("t.json.zst", frame(text)), ["k0", "k1", "k2"])
        self.assertEqual(self.kernels("two.json.zst", frame(text[:40]) + frame(text[40:])), ["k0", "k1", "k2"])
        self.assertEqual(len(self.kernels("two_kernel_trace.csv.zst", frame(rows[:250]) + frame(rows[250:]))), 3)
        long = json.dumps({"traceEvents": EVENTS * 2000}).encode()
        self.assertEqual(len(self.kernels("long.json.zst", frame(long))), 6000)
        self.assertRegex(self.refused("cut.json.zst", frame(long)[:50_000]), r"the zstd data is cut off after \d+ bytes of its text")
        self.assertRegex(self.refused("bad.json.zst", frame(text) + b"\x28\xb5\x2f\xfd\xff\xff\xff\xff" * 8), "damaged zstd data|cut off")

    def test_windows_of_zstandard(self):
        text = TEXT.encode()
        self.assertEqual(self.kernels("wide.json.zst", frame(text, 27)), ["k0", "k1", "k2"])
        self.assertIn("a window above 128 MiB", self.refused("wider.json.zst", frame(text, 28)))
        self.assertEqual(self.kernels("within.json.zst", frame(frame(text, 23), 27)), ["k0", "k1", "k2"])
        self.assertEqual(self.kernels("gz.json.zst.gz", gzip.compress(frame(text, 27))), ["k0", "k1", "k2"])
        self.assertIn("a window above 8 MiB", self.refused("each.json.zst", frame(frame(frame(text, 27), 27), 27)))

    def test_pipes(self):
        os.mkfifo(self.folder / "f.json")
        result = self.run_command(TACHO, "info", "f.json", code=1, timeout=20)
        self.assertRegex(result.stderr.decode(), r"f\.json: is a pipe, which can be read only once: write its contents to a file\n$")
        self.run_command(TACHO, "f.json", code=1, timeout=20)
        for name in ("1_kernel_trace.csv", "1_counter_collection.csv", "1_agent_info.csv", "results.csv", "results.sysinfo.txt", "a.db", "b.pftrace"):
            (self.folder / "pipes").mkdir(exist_ok=True)
            os.mkfifo(self.folder / "pipes" / name)
        result = self.run_command(TACHO, "import", "pipes", code=1, timeout=20)
        self.assertIn("nothing that AMD's tools write lies in it", result.stderr.decode())

    def test_long_names_in_tar(self):
        members = {"r/" + "x" * 97 + "/a.json": TEXT, "r/" + "y" * 120 + ".txt": "about", "README.txt": "about"}
        for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
            self.assertEqual(self.kernels(f"long{form}.tar", tarred(members, form=form)), ["k0", "k1", "k2"])
            several = {"r/" + "x" * 120 + f"/{name}.json": TEXT for name in "ab"}
            self.assertIn("2 files (a.json, b.json)", self.refused(f"two{form}.tar", tarred(several, form=form)))

    def test_archives_with_one_trace(self):
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            self.assertEqual(self.kernels(f"{method}.zip", zipped({"run/": "", "run/a.json": TEXT, "__MACOSX/run/._a.json": "x"}, method)),
                             ["k0", "k1", "k2"])
        self.assertEqual(self.kernels("packed.zip", zipped({"a.json.gz": gzip.compress(TEXT.encode())})), ["k0", "k1", "k2"])
        self.assertEqual(self.kernels("a.csv.zip", zipped({"a_kernel_trace.csv": CSV, "README.txt": "about"})), ["größe_1", "größe_2", "größe_3"])
        for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT):
            self.assertEqual(self.kernels(f"{form}.tar", tarred({"run/" + "x" * 80 + ".json": TEXT}, form=form)), ["k0", "k1", "k2"])
        self.assertEqual(self.kernels("long.tar", tarred({"run/" + "x" * 300 + ".json": TEXT})), ["k0", "k1", "k2"])
        self.assertEqual(self.kernels("a.tar.gz", tarred({"a.json": TEXT}, "w:gz")), ["k0", "k1", "k2"])
        self.assertEqual(self.kernels("b.tgz", tarred({"a.json.gz": gzip.compress(TEXT.encode())}, "w:gz")), ["k0", "k1", "k2"])
        self.assertEqual(self.kernels("tricks.tar", tarred({"../../../etc/a.json": TEXT})), ["k0", "k1", "k2"])

    def test_databases_in_archives(self):
        for name in ("rpd_schema1.rpd", "rocpd_sampled_counters.db"):
            whole = (FILES / name).read_bytes()
            kernels = self.query(FILES / name, "select count(*) from tacho.dispatch")
            for packed, data in (("zip", zipped({f"run/{name}": whole})), ("tar", tarred({name: whole})), ("tar.gz", tarred({name: whole}, "w:gz")),
                                 ("gz", gzip.compress(whole[:5000]) + gzip.compress(whole[5000:]))):
                self.assertEqual(self.query(self.written(f"{name}.{packed}", data), "select count(*) from tacho.dispatch"), kernels, packed)

    def test_perfetto_in_archives(self):
        self.tacho("export", "-f", "pftrace", "-o", "k.pftrace", self.written("k.json", TEXT))
        whole = (self.folder / "k.pftrace").read_bytes()
        for packed, data in (("zip", zipped({"k.pftrace": whole})), ("tar.gz", tarred({"k.pftrace": whole}, "w:gz")), ("pftrace.gz", gzip.compress(whole))):
            self.assertEqual(self.kernels(f"packed.{packed}", data), ["k0", "k1", "k2"], packed)

    def test_archives_that_hold_more(self):
        files = {"a.json": TEXT, "b.json": TEXT, "c.csv": CSV}
        self.assertIn("a zip archive with 3 files (a.json, b.json, c.csv): unpack it", self.refused("many.zip", zipped(files)))
        self.assertIn("a tar archive with 3 files (a.json, b.json, c.csv): unpack it", self.refused("many.tar", tarred(files)))
        self.assertIn("a tar archive with 3 files", self.refused("many.tar.gz", tarred(files, "w:gz")))
        self.assertIn("without a file", self.refused("none.zip", zipped({})))

    def test_other_packings_are_named(self):
        self.assertIn("a bzip2 file", self.refused("t.json.bz2", bz2.compress(TEXT.encode())))
        self.assertIn("an xz file", self.refused("t.json.xz", lzma.compress(TEXT.encode())))
        pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
        self.assertIn("a pointer of Git LFS", self.refused("t.json", pointer))
        for page in (b"<!DOCTYPE html><html>", b"<html>404"):
            self.assertIn("a page in HTML", self.refused("t.json", page))
        self.assertIn("a 7-Zip archive", self.refused("t.7z", b"7z\xbc\xaf\x27\x1c\x00\x04" + bytes(100)))
        self.assertIn("an xz file", self.refused("xz.zip", zipped({"t.json.xz": lzma.compress(TEXT.encode())})))
        self.assertIn("method 12", self.refused("bz.zip", zipped({"t.json": TEXT}, zipfile.ZIP_BZIP2)))

    def test_files_that_are_no_traces_are_named(self):
        for name, text, said in (("r.nsys-rep", bytes(range(200)), "a report of Nsight Systems: write its tables with nsys export --type sqlite"),
                                 ("r.qdrep", bytes(range(1, 200)), "a report of Nsight Systems"),
                                 ("r.bin", b"NVR\0" + bytes(range(90)), "a report of Nsight Compute"),
                                 ("host.xplane.pb", b"\n\x12\x08\x01abc", "a profile of XLA"),
                                 ("t.parquet", b"PAR1" + bytes(8) + b"PAR1", "a Parquet file"), ("perf.data", b"PERFILE2" + bytes(90), "a recording of perf"),
                                 ("app", b"\x7fELF\x02\x01\x01" + bytes(90), "a program or a library, no trace: tacho trace -- PROGRAM"),
                                 ("trace.txt", b"# tracer: nop\n#\n", "a trace of the Linux kernel"), ("t.textproto", b"packet {\n  timestamp: 5\n}\n", "written as text"),
                                 ("t.json", b"  \n \n", "nothing but white space"), ("t.json", b"null\n", "JSON without events"), ("t.json", b"42", "JSON without events"),
                                 ("t.json", b'"hello"', "JSON without events"), ("t.json", bytes(5000), "begins with zeros alone"),
                                 ("sum.csv", b"Time (%),Total Time (ns),Instances,Avg (ns),Name\n50,100,2,50,k\n", "sums by nsys stats"),
                                 ("m.csv", b'"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n"0","k","m","","1"\n', "metrics by Nsight Compute"),
                                 ("g.csv", b"Start (ns),Duration (ns),CorrId,GrdX,Device,Strm,Name\n100,10,1,1,GPU (0),7,k\n", "a table by nsys stats"),
                                 ("et.json", b'{"schema": "1.1.0-chakra.0.0.4", "nodes": [{"id": 1, "name": "[pytorch|profiler|execution_trace|process]"}]}',
                                  "an execution trace of PyTorch, which has no times"),
                                 ("t.txt", b"-----  -----\n Name  Self CPU %  \n-----  -----\naten::mm  10%\n", "a table that torch.profiler printed"),
                                 ("s.txt", b"main;run;step 12\nmain;run 3\n", "call stacks with counts"),
                                 ("t.json", b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>', "the answer of a server that refused"),
                                 ("t.json", b'var trace = {"traceEvents": [], "a": 1, "b": 2};', 'no JSON: it begins with "var trace = '),
                                 ("t.json", b'// mine\n{"traceEvents": []}', 'no JSON: it begins with "// mine"'),
                                 ("t.json", b'{"traceEvents": {"0": {"ph": "X", "name": "k"}}}', "traceEvents is no list of events"),
                                 ("t.json", b"[[1, 2, 3], [[0, 0, 0]]]", "a list of JSON that holds no event"),
                                 ("t.csv", b"epoch,loss,accuracy\n1,2,3\n", "a table whose header (epoch,loss,accuracy) is none of"),
                                 ("t.bin", bytes(range(255, 1, -1)), "in no format that tacho reads")):
            self.assertIn(said, self.refused(name, text), name)
        self.assertIn("a report of Nsight Systems", self.refused("r.nsys-rep.gz", gzip.compress(bytes(range(200)))))

    def test_a_profile_by_nvprof_is_named(self):
        with sqlite3.connect(self.folder / "run.db") as base:
            base.execute('CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (_id_ INTEGER PRIMARY KEY, start INT, "end" INT)')
        base.close()
        self.one_sentence(self.run_command(TACHO, "info", "run.db", code=1), "a profile by nvprof, which tacho does not read")

    def test_attributes_of_macos(self):
        """Finder puts "._NAME" beside each file that it copies to other disks and into archives."""
        attributes = b"\0\5\x16\7" + bytes(100)
        archive = zipped({"run/trace.json": TEXT, "__MACOSX/run/._trace.json": attributes.decode("latin-1"), "run/.DS_Store": "\0\0\0\1Bud1"})
        (self.folder / "run.zip").write_bytes(archive)
        self.run_command(TACHO, "info", "run.zip")
        folder = self.folder / "folder"
        folder.mkdir()
        (folder / "trace.json").write_text(TEXT)
        (folder / "._trace.json").write_bytes(attributes)
        self.assertIn("holds one trace", self.run_command(TACHO, "info", folder, code=1).stderr.decode())

    def test_a_list_that_lost_its_beginning(self):
        """rocprof leaves ",{...}" where it wrote no bracket."""
        whole, lost = self.folder / "whole.json", self.folder / "lost.json"
        events = json.loads(TEXT)["traceEvents"]
        whole.write_text(json.dumps(events))
        lost.write_text("".join("," + json.dumps(event) + "\n" for event in events))
        self.assertEqual(*[self.run_command(TACHO, "stats", path, "--by", "kernel", "--output-format", "csv").stdout for path in (whole, lost)])
        lost.write_text(',{"args":{"name":"COPY"},"ph":"M","pid":1,"name":"process_name","sort_index":0}\n')
        self.run_command(TACHO, "info", lost)

    def test_damaged_archives(self):
        whole = zipped({"a.json": TEXT})
        self.assertIn("zip archive", self.refused("cut.zip", whole[:-30]))
        wrong = zipped({"a.json": TEXT}, zipfile.ZIP_STORED).replace(b'"ts": 100', b'"ts": 900')
        self.assertIn("other contents than its list says", self.refused("sum.zip", wrong))
        long = zipped({"a.json": json.dumps({"traceEvents": EVENTS * 2000})}, zipfile.ZIP_STORED)
        at = long.rfind(b'"ts": 100')
        self.assertIn("other contents than its list says", self.refused("far.zip", long[:at + 6] + b"9" + long[at + 7:]))
        packed = frame(TEXT.encode())
        for text, said in ((TEXT, None), (TEXT.replace("100", "900"), "other contents"), (TEXT + " ", "other contents"), (TEXT[:-1], "other contents")):
            archive = bytearray(zipped({"a.json": packed}, zipfile.ZIP_STORED))
            entry = archive.rfind(b"PK\1\2")
            for place, value in ((entry + 10, struct.pack("<H", 93)), (entry + 16, struct.pack("<I", zlib.crc32(text.encode()))), (entry + 24, struct.pack("<I", len(text)))):
                archive[place:place + len(value)] = value
            if said is None:
                self.assertEqual(self.kernels("zstd.zip", bytes(archive)), ["k0", "k1", "k2"])
            else:
                self.assertIn(said, self.refused("zstd.zip", bytes(archive)))
        tar = tarred({"a.json": TEXT})
        self.assertIn("cut off", self.refused("cut.tar", tar[:600]))
        cut = gzip.compress(json.dumps({"traceEvents": EVENTS * 2000}).encode())[:1500]
        self.assertRegex(self.refused("cut.json.gz", cut), r"the gzip data is cut off after \d+ bytes of its text")


if __name__ == "__main__":
    harness.main()
