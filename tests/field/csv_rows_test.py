"""Rows of AMD's CSV files whose cells do not stand as their header says, and folders that hold them."""
import gzip
import json

from files_test import FILES
from files_test import FieldCase
from files_test import TACHO
from files_test import harness

COLUMNS = ("Kind,Agent_Id,Queue_Id,Stream_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp,"
           "LDS_Block_Size,Scratch_Size,VGPR_Count,Accum_VGPR_Count,SGPR_Count,Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z,"
           "Grid_Size_X,Grid_Size_Y,Grid_Size_Z")
V1 = ("Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgr,lds,scr,arch_vgpr,accum_vgpr,sgpr,wave_size,sig,obj,"
      "DispatchNs,BeginNs,EndNs,CompleteNs")
V2 = ("Dispatch_ID,GPU_ID,Queue_ID,PID,TID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Scratch_Per_Workitem,Arch_VGPR,Accum_VGPR,SGPR,"
      "Wave_Size,Kernel_Name,Start_Timestamp,End_Timestamp,Correlation_ID")
CALLS = "Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp\n"
COPIES = "Kind,Direction,Source_Agent_Id,Destination_Agent_Id,Correlation_Id,Start_Timestamp,End_Timestamp\n"


def row(number, name, start=None, end=None):
    start = 1_000_000_000 + 1000 * number if start is None else start
    end = start + 400 if end is None else end
    return f"KERNEL_DISPATCH,Agent 4,1,0,77,{number},12,{name},{number},{start},{end},0,0,16,0,32,64,1,1,1024,1,1"


def file_of(*rows, header=COLUMNS):
    return "\n".join([header, *rows]) + "\n"


class CsvRows(FieldCase):
    def kernels(self, text, name="t_kernel_trace.csv"):
        path = self.written(name, text) if isinstance(text, (str, bytes)) else text
        found = self.query(path, "select name, start, duration from tacho.dispatch order by start, name")
        self.notes = "\n".join(note for (note,) in self.query(path, "select text from tacho.note"))
        self.losses = {reason: count for reason, count in self.query(path, "select reason, sum(count) from tacho.loss group by reason")}
        return found

    def durations(self, text, name="t_kernel_trace.csv"):
        return [duration for _, _, duration in self.kernels(text, name)]

    # Commas in names

    def test_commas_in_the_only_name(self):
        names = ["void add<int, float>(int*)", "Cijk<128,256,1>(float, float)", '"quoted, name"', "plain", "f(a, b, c, d, e)"]
        found = self.kernels(file_of(*(row(i, name) for i, name in enumerate(names, 1))))
        self.assertEqual([name for name, _, _ in found], [name.strip('"') for name in names])
        self.assertEqual({duration for _, _, duration in found}, {400})
        self.assertIn("3 rows had a comma in an unquoted name", self.notes)
        self.assertEqual(self.losses, {})

    def test_other_separators(self):
        plain = [row(1, "k"), row(2, "void add<int, float>(int*)".replace(", ", "_")), row(3, "z")]
        wanted = self.kernels(file_of(*plain))
        for separator in ";\t|":
            text = file_of(*plain).replace(",", separator)
            for form in (text, f"sep={separator}\n{text}", "\ufeff" + text.replace("\n", "\r\n"), text.replace("\n", "\r")):
                self.assertEqual(self.kernels(form), wanted, form[:40])
                self.assertEqual((self.notes, self.losses), ("", {}))
            # Cells with the separator in quotes, names with commas without.
            name = f'"a{separator}b"'
            text = file_of(row(1, name), row(2, "f(a_b)")).replace(",", separator).replace("a_b", "a, b")
            self.assertEqual([found[0] for found in self.kernels(text)], [f"a{separator}b", "f(a, b)"])
        # The decimal comma of such a file is no time.
        self.kernels(file_of(row(1, "k"), row(2, "k", "1000_0", 2000)).replace(",", ";").replace("1000_0", "1000,0"))
        self.assertIn('"1000,0" is no time in ns', self.notes)
        v1 = "0,k,0,0,0,5,5,64,64,0,0,8,0,16,64,0x0,0x1,100,150,180,190"
        for separator in ";\t":
            self.assertEqual(self.durations((V1 + "\n" + v1 + "\n").replace(",", separator), "results.csv"), [30])

    def test_headers_that_scripts_wrote(self):
        wanted = self.kernels(file_of(row(1, "k"), row(2, "z")))
        for header in (COLUMNS.lower(), COLUMNS.upper(), COLUMNS.replace("_", " "), COLUMNS.replace(",", ", ")):
            self.assertEqual(self.kernels(file_of(row(1, "k"), row(2, "z"), header=header), "any.csv"), wanted, header[:40])
            self.assertEqual((self.notes, self.losses), ("", {}))

    def test_lines_in_front_of_the_header(self):
        plain = [row(1, "k"), row(2, "z")]
        wanted = self.kernels(file_of(*plain))
        for before, said in (("# my run\n", "1 line before the header is not read"),
                             ("W20250904 21:02:16.242980 13996 tool.cpp:105] opened\nrun 5, node 7\n\n", "2 lines before the header are not read")):
            for name in ("t_kernel_trace.csv", "any.csv"):
                self.assertEqual(self.kernels(before + file_of(*plain), name), wanted)
                self.assertIn(said, self.notes)
                self.assertEqual(self.losses, {})
        self.info(self.written("any.csv", "# text\n" * 21 + file_of(*plain)), code=1)
        self.assertIn("none of rocprofv3's or rocprof's traces", self.said)

    def test_files_put_together(self):
        wanted = self.kernels(file_of(*(row(i, "k") for i in range(1, 5))))
        self.assertEqual(self.kernels(file_of(row(1, "k"), row(2, "k")) + file_of(row(3, "k")) + file_of(row(4, "k"))), wanted)
        self.assertIn("the header comes 2 times more: files were put together", self.notes)
        self.assertEqual(self.losses, {})

    def test_commas_in_functions(self):
        text = ("Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp\n"
                "MARKER_CORE_RANGE_API,step 1, forward,77,77,1,100,200\nHIP_RUNTIME_API,hipMalloc,77,77,2,300,400\n")
        path = self.written("t_marker_api_trace.csv", text)
        self.assertEqual(self.query(path, "select name, duration from tacho.marker"), [["step 1, forward", 100]])
        self.assertEqual(self.query(path, "select name from tacho.api"), [["hipMalloc"]])

    def test_commas_where_two_columns_are_names(self):
        text = file_of(row(1, "a<b, c>") + ",f", row(2, "k") + ",g", header=COLUMNS + ",Function")
        self.assertEqual([name for name, _, _ in self.kernels(text)], ["k"])
        self.assertEqual(self.losses, {"bad input row": 1})
        self.assertRegex(self.notes, r"1 row not read: the header has 23 columns, row 2 has 24 cells")

    def test_numbers_that_spreadsheets_cut(self):
        """1.76E+18 is what a spreadsheet leaves of 19 digits: nothing of a kernel's time is left in it."""
        self.assertEqual(self.kernels(file_of(row(1, "k", "1.76E+18", "1.76E+18"), row(2, "k", "1.00e12", "1.00e12"), row(3, "k"))),
                         self.kernels(file_of(row(3, "k"))))
        self.kernels(file_of(row(1, "k", "1.76E+18", "1.76E+18"), row(2, "k", "1.00E+12", "1.01E+12")))
        self.assertEqual(self.losses, {"bad input row": 1})
        self.assertIn('"1.76E+18" is no time in ns (row 2)', self.notes)
        self.assertIn("its times were saved with few digits, as spreadsheets do: they are rounded to steps of 10000000000 ns", self.notes)
        # Exponents that keep all digits are numbers like others; so is a whole 1e9.
        self.assertEqual(self.durations(file_of(row(1, "k", "1.000001e9", "1.0000014E+09"), row(2, "k", "1e9", "1000000400"))), [400, 400])
        self.assertNotIn("digits", self.notes)

    def test_thousands_separators(self):
        self.kernels(file_of(row(1, "k"), row(2, "k", '"1,000,002,000"', '"1,000,002,400"')))
        self.assertEqual(self.losses, {"bad input row": 1})
        self.assertIn('"1,000,002,000" is no time in ns (row 3)', self.notes)
        found = self.kernels(file_of(row(1, "k"), row(2, "k<int>", "1,234,567,890", "1,234,568,290"), row(3, "k<a, b>", "1,000,000,000", "1,000,000,400")))
        self.assertEqual([name for name, _, _ in found], ["k"])
        self.assertEqual(self.losses, {"bad input row": 2})
        self.assertIn("rows 3, 4", self.notes)

    # Too few and too many cells

    def test_too_few_cells(self):
        self.assertEqual(self.durations(file_of(row(1, "k"), row(2, "k").rsplit(",", 3)[0], row(3, "k"))), [400, 400])
        self.assertEqual(self.losses, {"bad input row": 1})
        self.assertIn("1 row not read: the header has 22 columns, row 3 has 19 cells", self.notes)
        self.assertEqual(self.durations(file_of(row(1, "k"), row(2, "k")[:60])), [400])
        self.assertEqual(self.durations((file_of(row(1, "k")) + row(2, "k")[:40])), [400])
        self.assertIn("the last row is cut off", self.notes)

    def test_a_file_without_a_good_row(self):
        path = self.written("t_kernel_trace.csv", file_of(*(row(i, "k").rsplit(",", 4)[0] for i in (1, 2, 3))))
        self.info(path, code=1)
        self.assertRegex(self.said, r"its header has 22 columns, but its first row has 18 cells: not one of 3 rows can be read")

    def test_an_index_without_a_name(self):
        self.assertEqual(self.durations(file_of(*(f"{i}," + row(i + 1, '"k<a, b>"') for i in range(3)))), [400] * 3)
        self.assertEqual(self.durations(file_of(*(row(i + 1, "k") + "," for i in range(3)))), [400] * 3)

    def test_rocprofv2_without_two_times(self):
        short = '{0},"k<a, b>",4,1,0,900,901,1024,256,0,0,64,0,32,64,0,0x7f0,{1},{2}'
        rows = [short.format(i, 1_000_000_000 + 1000 * i, 1_000_000_400 + 1000 * i) for i in range(3)]
        self.assertEqual(self.durations("\n".join([V1, "", *rows]) + "\n", "results.csv"), [400] * 3)
        whole = '{0},"k",4,1,0,900,901,1024,256,0,0,64,0,32,64,0,0x7f0,{1},{1},{2},{2}'
        self.assertEqual(self.durations("\n".join([V1, "", whole.format(0, 100, 500), rows[1]]) + "\n", "results.csv"), [400] * 2)
        path = self.written("short.csv", "\n".join([V1, "", *(text.rsplit(",", 1)[0] for text in rows)]) + "\n")
        self.info(path, code=1)
        self.assertIn("21 columns, but its first row has 18 cells: not one of 3 rows", self.said)

    # Numbers

    def test_numbers_that_pandas_wrote(self):
        text = file_of(row("1.0", "k", "1000001000.0", "1000001400.0"), row("2.0", "k", "1.000002e9", "1.0000024e+09"), row(3, "k", "1000003000", "1000003400.00"))
        self.assertEqual(self.durations(text), [400] * 3)
        self.assertEqual(self.query(self.folder / "t_kernel_trace.csv", "select min(correlation), max(correlation) from tacho.dispatch"), [[1, 3]])
        self.assertEqual(self.notes, "")
        self.durations(file_of(*(row(i, "k", f"1.70000000000000{i}e+18", f"1.70000000000001{i}e+18") for i in (1, 2))))
        self.assertEqual(self.notes.count("rounded to steps of 256 ns"), 1, self.notes)
        self.durations(file_of(row(1, "k", "1700000000000000001", "1700000000000000401")))
        self.assertEqual(self.notes, "")

    def test_unknown_cells(self):
        text = file_of(row(1, "k", end="nan"), row(2, "k", end=""), row(3, "k", "NaN", "NaN"), row(4, "k").replace(",1024,1,1", ",NaN,NaN,NaN"))
        self.assertEqual(self.durations(text), [None, None, 400])
        self.assertEqual(self.query(self.folder / "t_kernel_trace.csv", "select k.grid_x, k.group_x from tacho.dispatch d join tacho.kernel k on k.id = d.dim order by d.start")[-1], [None, 64])
        self.assertEqual(self.losses["bad input row"], 1)

    def test_times_that_were_not_measured(self):
        calls = "Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp\nHIP_RUNTIME_API,hipLaunchKernel,77,77,2,1000002000,1000002100\n"
        folder = self.folder / "d"
        folder.mkdir()
        (folder / "77_hip_api_trace.csv").write_text(calls)
        (folder / "77_kernel_trace.csv").write_text(file_of(row(1, "k"), row(2, "k", 0, 0), row(3, "k", 0, 0), row(4, "k")))
        self.assertEqual(self.kernels(folder), [["k", 1000001000, 400], ["k", 1000002100, None], ["k", 1000004000, 400]])
        self.assertIn("2 kernels without times", self.notes)
        self.assertEqual(sum(self.losses.values()), 1)
        self.assertEqual(self.durations(file_of(row(1, "k", 0, 0), row(2, "k", 500, 900))), [0, 400])

    # Headers

    def test_missing_columns_are_named(self):
        for header, missing in ((COLUMNS.replace("End_Timestamp", "End"), "has no column End_Timestamp, which a kernel trace needs"),
                                ("Kind,Direction,End_Timestamp", "has no column Start_Timestamp, which a trace of copies needs"),
                                ("Domain,Function,Start_Timestamp", "has no column End_Timestamp, which a trace of calls needs")):
            self.info(self.written("any.csv", file_of(row(1, "k"), header=header)), code=1)
            self.assertIn(missing, self.said)
        folder = self.folder / "d"
        folder.mkdir()
        (folder / "1_kernel_trace.csv").write_text("Kind,Agent_Id\nK,1\n")
        self.info(folder, code=1)
        self.assertIn("has no columns Kernel_Name, Start_Timestamp, End_Timestamp, which a kernel trace needs", self.said)

    # Folders

    def imported(self, folder):
        self.tacho("import", folder, "-o", "out", "--overwrite", "--arch", "gfx90a")
        return sorted(path.name for path in self.folder.iterdir() if path.name.startswith("out"))

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def test_folders_of_rocprofv2(self):
        lines = "".join(f"{i},1,1,4711,4711,1024,64,0,0,16,0,32,64,\"add(int*, int)\",{1000 * i + 1000},{1000 * i + 1400},0\n" for i in range(5))
        self.write("a/out/pass_1/results_4711.csv", V2 + "\n\n" + lines)
        self.assertEqual(self.imported("a"), ["out.tacho"])
        self.assertEqual(self.query(self.folder / "out.tacho", "select count(*), sum(duration) from tacho.dispatch"), [[5, 2000]])
        self.assertEqual(self.query(self.folder / "a/out/pass_1", "select count(*) from tacho.dispatch"), [[5]])

    def test_a_run_that_is_called_results(self):
        for prefix in ("results_", "other_", "hip_api_trace_"):
            folder = f"named_{prefix}"
            self.write(f"{folder}/{prefix}kernel_trace.csv", file_of(row(1, "k")))
            self.write(f"{folder}/{prefix}hip_api_trace.csv", CALLS + "HIP_RUNTIME_API,hipLaunchKernel,77,77,1,1000000000,1000000100\n")
            self.write(f"{folder}/{prefix}memory_copy_trace.csv", COPIES + "MEMORY_COPY,MEMORY_COPY_HOST_TO_DEVICE,CPU 0,GPU 0,2,1000002000,1000002100\n")
            for table in ("dispatch", "api", "copy"):
                self.assertEqual(self.query(self.folder / folder, f"select count(*) from tacho.{table}"), [[1]], (prefix, table))
        self.write("calls/results_hip_api_trace.csv", CALLS + "HIP_RUNTIME_API,hipLaunchKernel,77,77,1,1000000000,1000000100\n")
        self.assertEqual(self.query(self.folder / "calls", "select count(*) from tacho.api"), [[1]])
        self.assertEqual(self.imported("calls"), ["out.tacho"])

    def test_operations_of_rocprofv2_that_have_no_table(self):
        self.write("v2/hcc_ops_trace_1.csv", "Domain,Operation,Kernel_Name,Start_Timestamp,End_Timestamp,Correlation_ID\n"
                   "HIP_OPS,KernelExecution,k,1000,1400,1\nHIP_OPS,Barrier,,2000,2400,2\nHIP_OPS,Marker,,3000,3400,3\n"
                   "HIP_OPS,MapBuffer,,4000,4400,4\nHIP_OPS,NativeKernel,,5000,5400,5\n")
        self.assertEqual([name for name, _, _ in self.kernels(self.folder / "v2")], ["k"])
        self.assertEqual(self.losses, {"unknown record kind": 2})
        self.assertRegex(self.notes, r'2 operations that are no copy, no fill and no named kernel were not read; the first is "MapBuffer"')
        self.assertRegex(self.notes, r"hcc_ops_trace_1.csv: 2 barriers, which are no work, were left out")

    def test_agents_by_each_of_their_numbers(self):
        self.write("ag/1_agent_info.csv", "Node_Id,Logical_Node_Id,Agent_Type,Name\n0,5,CPU,epyc\n5,6,GPU,gfx90a\n7,7,GPU,gfx942\n7,7,GPU,gfx950\n")
        labels = ("Agent 5", "Agent 6", "Agent 7", "Agent 0", "GPU 2", "CPU 0", "GPU 9")
        self.write("ag/1_kernel_trace.csv", file_of(*(row(i, f"k{i}").replace("Agent 4", label) for i, label in enumerate(labels))))
        self.assertEqual(self.query(self.folder / "ag", "select d.name from tacho.dispatch x join tacho.track t on t.id = x.track "
                                    "join tacho.device d on d.id = t.device order by x.start"),
                         [["epyc"], ["gfx90a"], ["gfx942"], ["epyc"], ["gfx950"], ["epyc"], ["GPU 9"]])

    def test_many_ranges_of_rocprofv2(self):
        header, count = "ROCTX_ID,Message,Timestamp\n", 300_000
        folder = self.folder / "r"
        folder.mkdir()
        with open(folder / "roctx_trace_1.csv", "w") as file:
            file.write(header)
            for i in range(count):  # each range's end stands before its begin in the file
                file.write(f"{i + 1},,{1_000_000 + 10 * i + 5}\n{i + 1},step {i % 10},{1_000_000 + 10 * i}\n")
        self.assertEqual(self.query(folder, "select count(*), min(duration), max(duration) from tacho.marker"), [[count, 5, 5]])
        self.write("again/roctx_trace_1.csv", header + "1,a,100\n1,b,200\n1,,300\n2,,400\n")
        self.assertEqual(self.query(self.folder / "again", "select name, start, duration from tacho.marker order by start"), [["a", 100, None], ["b", 200, 100]])
        self.write("marks/roctx_trace_1.csv", header + "0,a,100\n0,b,200\n0,,300\n3,c,120\n3,,220\n")
        self.assertEqual(self.query(self.folder / "marks", "select name, start, duration from tacho.marker order by start"),
                         [["a", 100, 0], ["c", 120, 100], ["b", 200, 0]])

    def test_perfetto_traces_of_another_run(self):
        self.tacho("export", "-f", "pftrace", "-o", "p.pftrace", self.written("t_kernel_trace.csv", file_of(row(1, "other"))))
        perfetto = (self.folder / "p.pftrace").read_bytes()
        names = lambda: [name for (name,) in self.query(self.folder / "out.tacho", "select name from tacho.dispatch order by name")]
        for ending, data in (("perfetto-trace", perfetto), ("pftrace.gz", gzip.compress(perfetto))):
            folder = self.folder / ending
            folder.mkdir()
            (folder / f"b.{ending}").write_bytes(data)
            self.imported(folder)
            self.assertEqual(names(), ["other"], ending)
            (folder / "7_kernel_trace.csv").write_text(file_of(row(1, "k")))
            self.imported(folder)
            self.assertEqual(names(), ["k", "other"], ending)
            (folder / f"b.{ending}").rename(folder / f"7_results.{ending}")
            (folder / f"c.{ending}").write_bytes(b"about\n")
            self.imported(folder)
            self.assertEqual(names(), ["k"], ending)
            said = self.run_command(TACHO, "import", folder, "-o", "out", "--overwrite").stderr.decode()
            self.assertIn(f"{folder}: 1 Perfetto trace is left out: other files of the same run hold more", said)
            self.assertIn(f"c.{ending}: is left out: its name is that of a Perfetto trace, and its contents are not", said)

    def test_packed_databases(self):
        whole = (FILES / "rpd_schema1.rpd").read_bytes()
        folder = self.folder / "packed"
        folder.mkdir()
        (folder / "a.rpd.gz").write_bytes(gzip.compress(whole))
        self.assertEqual(self.imported(folder), ["out.tacho"])
        (folder / "notes.txt").write_text("about")
        self.run_command(TACHO, "ranks", folder, code=None)
        result = self.run_command(TACHO, "packed/a.rpd.gz", code=1)
        self.assertIn("tacho info packed/a.rpd.gz", result.stderr.decode())

    def test_profile_folders_become_no_traces(self):
        counted = "".join(f"{i},1,1,4711,4711,1024,64,0,0,16,0,32,64,\"add(int*, int)\",{1000 * i + 1000},{1000 * i + 1400},0,16\n" for i in range(5))
        self.write("p/pass_1/results_4711.csv", V2 + ",SQ_WAVES\n\n" + counted)
        self.assertEqual(self.imported("p"), ["out"])
        self.info(self.folder / "p" / "pass_1", code=1)
        self.write("p/pass_1/timestamps.csv", V2 + "\n\n")
        self.assertEqual(self.imported("p"), ["out"])

    def test_any_name_is_found_by_its_header(self):
        self.write("n/kernels of today.csv", file_of(row(1, "k"), row(2, "k")))
        self.write("n/notes.csv", "a,b\n1,2\n")
        self.assertEqual(self.imported("n"), ["out.tacho"])
        self.assertEqual(self.query(self.folder / "out.tacho", "select count(*) from tacho.dispatch"), [[2]])

    # Text

    def test_backslashes_stay(self):
        found = self.kernels(file_of(row(1, r"C:\runs\new\test.hip:kernel"), row(2, r'"D:\a\tb\u0041, x"')))
        self.assertEqual([name for name, _, _ in found], [r"C:\runs\new\test.hip:kernel", r"D:\a\tb\u0041, x"])


class Rocprofv3Json(FieldCase):
    def document(self, *dispatches):
        return {"rocprofiler-sdk-tool": [{
            "metadata": {"pid": 77}, "agents": [{"id": {"handle": 4}, "node_id": 1, "type": 2, "name": "gfx90a"}],
            "strings": {"buffer_records": [], "callback_records": []}, "kernel_symbols": [{"kernel_id": 1, "formatted_kernel_name": "k"}],
            "buffer_records": {"kernel_dispatch": [
                {"kind": 1, "operation": 1, "thread_id": 77, "correlation_id": {"internal": i, "external": 0}, "start_timestamp": start, "end_timestamp": end,
                 "dispatch_info": {"agent_id": {"handle": 4}, "queue_id": {"handle": 1}, "kernel_id": 1, "dispatch_id": i}}
                for i, (start, end) in enumerate(dispatches, 1)]}}]}

    def count(self, path):
        return self.query(path, "select count(*), count(duration), sum(duration) from tacho.dispatch")[0]

    def test_text_behind_the_end(self):
        text = json.dumps(self.document((1000, 1400), (2000, 2400)))
        self.assertEqual(self.count(self.written("t_results.json", text + "\n\n")), [2, 2, 800])
        for tail in ("x", '{"a": ', "]}"):
            path = self.written("t_results.json", text + "\n" + tail)
            self.assertEqual(self.count(path), [2, 2, 800], tail)
            self.assertRegex(self.info(path) + self.said, rf"text after the end at byte {len(text) + 1} is not read")
        self.assertEqual(self.count(self.written("t_results.json", text + text)), [4, 4, 1600])

    def test_times_that_were_not_measured(self):
        path = self.written("t_results.json", self.document((1_000_000_000, 1_000_000_400), (0, 0), (1_000_002_000, 1_000_002_400)))
        self.assertEqual(self.count(path), [2, 2, 800])
        self.assertIn("1 kernel without times", self.info(path) + self.said)


if __name__ == "__main__":
    harness.main()
