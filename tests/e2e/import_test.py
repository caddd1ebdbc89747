"""tacho import: folders that AMD's tools left become traces and profile folders."""
import csv
import json
import shutil

import harness
from harness import DATA, TACHO, need_data

KERNELS = ('"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name","Correlation_Id",'
           '"Start_Timestamp","End_Timestamp","LDS_Block_Size","Scratch_Size","VGPR_Count","Accum_VGPR_Count","SGPR_Count",'
           '"Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"\n')
V1 = ("Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgr,lds,scr,arch_vgpr,accum_vgpr,sgpr,wave_size,sig,obj,"
      "DispatchNs,BeginNs,EndNs,CompleteNs,DurationNs\n")


class Import(harness.Case):
    def done(self, *arguments, code=0):
        return self.run_command(TACHO, "import", *arguments, code=code)

    def write(self, path, text):
        path = self.folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def kernels(self, trace):
        result = self.run_command(TACHO, "query", trace, "--dialect", "tacho", "--output-format", "json",
                                  "SELECT k.name, count(*), sum(d.duration) FROM dispatch d JOIN kernel k ON k.id = d.dim GROUP BY 1 ORDER BY 1")
        return [tuple(row) for row in json.loads(result.stdout)["rows"]]

    def row(self, number, name, start, end):
        return (f'"KERNEL_DISPATCH","Agent 1",1,0,7,{number},1,"{name}",{number},{start},{end},0,0,8,0,16,64,1,1,1024,1,1\n')

    def test_traces_of_rocprofv3(self):
        for pid in (11, 12):
            self.write(f"out/host/{pid}_kernel_trace.csv", KERNELS + self.row(1, "add", 1000, 1500) + self.row(2, "mul", 2000, 2300))
        result = self.done("out")
        self.assertEqual(result.stdout.decode().strip(), "out.tacho")
        self.assertEqual(self.kernels("out.tacho"), [("add", 2, 1000), ("mul", 2, 600)])
        self.assertFalse((self.folder / "out-profile").exists())

    def test_rocprof_v1(self):
        row = ('{0},"vecCopy(double*, int) [clone .kd]",0,0,{0},99,99,65536,256,0,0,8,0,16,64,0x0,0x7f,{1},{1},{2},{2},{3}\n')
        self.write("rp/results.csv", V1 + "".join(row.format(i, 1000 * i, 1000 * i + 300, 300) for i in range(3)))
        self.done("rp")
        self.assertEqual(self.kernels("rp.tacho"), [("vecCopy(double*, int)", 3, 900)])
        # The file itself is read as well.
        self.assertEqual(self.kernels("rp/results.csv"), [("vecCopy(double*, int)", 3, 900)])

    # The files of rocprof v1, as tblextr.py and sqlitedb.py of its sources write them, with two threads, a kernel and a copy
    # each.
    def rocprof_json(self):
        def event(section, lane, name, begin, end, **more):
            fields = {"BeginNs": begin, "EndNs": end, "pid": 99, "tid": lane, "Name": name, **more, "DurationNs": end - begin}
            arguments = ",\n    ".join(f'"{key}":"{value}"' for key, value in fields.items())
            return (f',{{"ph":"X","name":"{name}","pid":{section},"tid":{lane},"ts":"{begin // 1000}","dur":"{(end - begin) // 1000}",'
                    f'\n  "args":{{\n    {arguments}\n  }}\n}}\n')

        def arrow(number, call_us, call_lane, work_us, section, lane):
            return (f',{{"ts":{call_us},"ph":"s","cat":"DataFlow","id":{number},"pid":2,"tid":{call_lane},"name":"dep"}}\n'
                    f',{{"ts":{work_us},"ph":"t","cat":"DataFlow","id":{number},"pid":{section},"tid":{lane},"name":"dep"}}\n')
        text = '{ "traceEvents":[{}\n,{"args":{"name":"CPU HIP API"},"ph":"M","pid":2,"name":"process_name","sort_index":1}\n'
        for lane, at in ((11, 100_000), (12, 100_000)):
            text += event(2, lane, "hipLaunchKernel", at, at + 20_000, args="( function_address(0x1) stream(0))")
            text += event(2, lane, "hipMemcpyAsync", at + 30_000, at + 40_000, args="( dst(0x2))")
        text += event(0, 11, "phase one", 90_000, 300_000)
        text += event(3, 11, "hsa_signal_create", 50_000, 51_000)
        for stream, at in ((0, 150_000), (1, 160_000)):
            text += event(6, stream, "add(int*) [clone .kd]", at, at + 5_000, **{"dev-id": 0, "queue-id": 1, "stream-id": stream})
            text += event(1, stream, "CopyHostToDevice", at + 50_000, at + 60_000, **{"dev-id": 0, "queue-id": 0, "stream-id": stream})
        text += event(518, 0, "<barrier packet>", 1, 2)
        text += arrow(1, 110, 11, 150, 6, 0) + arrow(2, 110, 12, 160, 6, 1) + arrow(3, 135, 11, 200, 1, 0) + arrow(4, 135, 12, 210, 1, 1)
        return text + '],\n"otherData": {\n    "host": "here"\n  }\n}'

    def test_traces_of_rocprof_v1(self):
        self.write("rp/results.json", self.rocprof_json())
        row = '{0},"add(int*) [clone .kd]",0,0,{0},99,99,65536,256,0,0,8,0,16,64,0x0,0x7f,{1},{1},{2},{2},{3}\n'
        self.write("rp/results.csv", V1 + row.format(0, 150_000, 155_000, 5_000))
        self.done("rp")
        ask = lambda text: [tuple(row) for row in json.loads(self.run_command(
            TACHO, "query", "rp.tacho", "--dialect", "tacho", "--output-format", "json", text).stdout)["rows"]]
        self.assertEqual(self.kernels("rp.tacho"), [("add(int*)", 2, 10_000)])
        self.assertEqual(ask("SELECT f.domain, f.name, count(*) FROM api a JOIN function f ON f.id = a.dim GROUP BY 1, 2 ORDER BY 1, 2"),
                         [("hip", "hipLaunchKernel", 2), ("hip", "hipMemcpyAsync", 2), ("hsa", "hsa_signal_create", 1)])
        threads = "JOIN track t ON t.id = a.track JOIN thread h ON h.id = t.thread"
        self.assertEqual(ask(f"SELECT f.name, h.tid, d.start FROM dispatch d JOIN api a ON a.correlation = d.correlation JOIN function f "
                             f"ON f.id = a.dim {threads} ORDER BY 3"), [("hipLaunchKernel", 11, 150_000), ("hipLaunchKernel", 12, 160_000)])
        self.assertEqual(ask(f"SELECT f.name, h.tid, s.direction FROM copy d JOIN copy_shape s ON s.id = d.dim JOIN api a ON "
                             f"a.correlation = d.correlation JOIN function f ON f.id = a.dim {threads} ORDER BY 2"),
                         [("hipMemcpyAsync", 11, "host to device"), ("hipMemcpyAsync", 12, "host to device")])
        self.assertEqual(ask("SELECT l.name, m.duration FROM marker m JOIN label l ON l.id = m.dim"), [("phase one", 210_000)])
        self.assertEqual(ask("SELECT count(*) FROM loss"), [(0,)])
        self.assertIn(("1 barrier packet, which is no work, was left out",), ask("SELECT text FROM note"))

    def test_arrows_of_rocprof_v1_in_any_order(self):
        count = 30_000
        event = lambda section, lane, name, us: (f'{{"ts":{us},"dur":4,"ph":"X","pid":{section},"tid":{lane},"name":"{name}","args":{{'
                                                 f'"BeginNs":"{us * 1000}","EndNs":"{us * 1000 + 4000}","pid":"99","tid":"{lane}"}}}}')
        end = lambda phase, number, section, us: f'{{"ts":{us},"ph":"{phase}","id":{number},"pid":{section},"tid":1,"name":"dep"}}'
        lines = []
        for i in reversed(range(count)):  # calls lie 10 us apart, and kernels in the other order
            call, work = 10 + 10 * i, 10_000_000 - 10 * i
            lines += [end("s", i, 2, call + 2), event(6, 1, f"k{i % 7}", work), end("t", i, 6, work), event(2, 1, f"call{i % 7}", call)]
        lines += [end("t", 5, 1, 9), event(1, 1, "FillBuffer", 9), event(1, 1, "CopyHostToDevice", 9)]  # one arrow at a place for two
        lines += [event(6, 1, "alone", 20_000_000), end("t", count + 1, 6, 20_000_000)]
        self.write("rp/results.json", '{"traceEvents":[{}\n,' + "\n,".join(lines) + "]}")
        self.done("rp")
        ask = lambda text: [tuple(row) for row in json.loads(self.run_command(
            TACHO, "query", "rp.tacho", "--dialect", "tacho", "--output-format", "json", text).stdout)["rows"]]
        self.assertEqual(ask("SELECT count(*), sum(replace(f.name, 'call', 'k') = d.name), sum(d.start / 1000 = 10000010 - a.start / 1000) "
                             "FROM dispatch d JOIN api a ON a.correlation = d.correlation JOIN function f ON f.id = a.dim"), [(count,) * 3])
        self.assertEqual(ask("SELECT count(*), sum(correlation > 0) FROM dispatch"), [(count + 1, count)])
        self.assertEqual(ask("SELECT (SELECT sum(correlation > 0) FROM copy), (SELECT sum(correlation > 0) FROM fill)"), [(1, 0)])

    def test_bad_json_of_rocprof_v1(self):
        text = self.rocprof_json()
        damaged = text.replace('"BeginNs":"50000"', '"BeginNs":"soon"').replace('"EndNs":"155000"', '"EndNs":"9"')
        path = self.write("rp/results.json", damaged)
        self.done("rp")
        rows = json.loads(self.run_command(TACHO, "query", "rp.tacho", "--dialect", "tacho", "--output-format", "json",
                                           "SELECT reason, sum(count) FROM loss GROUP BY 1 ORDER BY 1").stdout)["rows"]
        self.assertEqual(rows, [["bad input row", 1], ["times out of order", 1]])
        path.write_text(text[:len(text) // 2])
        self.assertRegex(self.run_command(TACHO, "info", path, code=1).stderr.decode(), r"results\.json: at byte \d+: ")

    def markers(self, file):
        return [tuple(row) for row in json.loads(self.run_command(
            TACHO, "query", file, "--dialect", "tacho", "--output-format", "json",
            "SELECT l.name, l.kind, m.start, m.duration FROM marker m JOIN label l ON l.id = m.dim ORDER BY 3, 4 DESC").stdout)["rows"]]

    def test_ranges_of_rocprof_v2(self):
        """Its ROCTx file has a message for marks and pushes alike, and none for pops and stops."""
        def rows(*lines):
            self.write("v2/hip_api_trace_77.csv", "Domain,Function,Start_Timestamp,End_Timestamp,Correlation_ID\n\n"
                       'HIP_API_DOMAIN,"hipLaunchKernel",100,200,1\n')
            self.write("v2/roctx_trace_77.csv", "Domain,ROCTX_ID,Message,Timestamp\n\n" + "".join(f"ROCTX_DOMAIN,{line}\n" for line in lines))
            self.run_command(TACHO, "import", "v2", "--overwrite")
            asked = self.run_command(TACHO, "query", "v2.tacho", "--dialect", "tacho", "--output-format", "json",
                                     "SELECT text FROM note UNION ALL SELECT reason || ' ' || sum(count) FROM loss GROUP BY reason")
            return self.markers("v2.tacho"), "\n".join(row[0] for row in json.loads(asked.stdout)["rows"])

        # Pushed and popped, and within it started and stopped by id; rows are not in order of time.
        found, said = rows('0,"outer",10', '0,"in, ner",20', '3,"by id",15', "0,,30", "3,,60", "0,,50")
        self.assertEqual(found, [("outer", "push/pop", 10, 40), ("by id", "start/stop", 15, 45), ("in, ner", "push/pop", 20, 10)])
        self.assertIn("as those of one thread", said)
        # As AMD's own example writes it: marks between pushes.
        found, said = rows('0,"mark",10', '0,"launch",20', '1,"by id",22', "1,,30", '0,"after",31', '0,"copy",32', "0,,40", "0,,41")
        self.assertEqual(found, [("mark", "mark", 10, 0), ("launch", "mark", 20, 0), ("by id", "start/stop", 22, 8), ("after", "mark", 31, 0),
                                 ("copy", "mark", 32, 0)])
        self.assertIn("there are 4 messages and 2 pops: all messages are shown as marks", said)
        found, said = rows('0,"one",10', '0,"two",20')
        self.assertEqual(found, [("one", "mark", 10, 0), ("two", "mark", 20, 0)])
        self.assertIn("none of these 2 was popped", said)
        # A pop that comes first, a range that is never stopped, a stop of none, rows that make no sense.
        found, said = rows("0,,5", '0,"late",10', '7,"open",11', "8,,12", '0,"x",soon', ',"x",13')
        self.assertEqual(found, [("late", "mark", 10, 0), ("open", "start/stop", 11, None)])
        self.assertIn("1 messages and 1 pops", said)
        self.assertIn("bad input row 3", said)
        self.assertIn("open at exit 1", said)
        # Nothing but ranges was traced.
        self.write("only/roctx_trace_9.csv", 'Domain,ROCTX_ID,Message,Timestamp\n\nROCTX_DOMAIN,0,"a range",5\nROCTX_DOMAIN,0,,9\n')
        self.done("only")
        self.assertEqual(self.markers("only.tacho"), [("a range", "push/pop", 5, 4)])

    def test_traces_of_rocprof_v2(self):
        api = "Domain,Function,Start_Timestamp,End_Timestamp,Correlation_ID\n\n"
        self.write("v2/hip_api_trace_77.csv", api + 'HIP_API_DOMAIN,"hipLaunchKernel",100,200,1\nHIP_API_DOMAIN,"hipMemcpyAsync",300,350,2\n')
        self.write("v2/hsa_api_trace_77.csv", api + 'HSA_API_DOMAIN,"hsa_init",10,20,9\n')
        self.write("v2/hcc_ops_trace_77.csv", "Domain,Operation,Kernel_Name,Start_Timestamp,Stop_Timestamp,Correlation_ID\n\n"
                   'HIP_OPS_DOMAIN,"KernelExecution","add(int*)",150,180,1\nHIP_OPS_DOMAIN,"CopyHostToDevice",,320,340,2\n'
                   'HIP_OPS_DOMAIN,"Marker",,320,340,2\n')
        self.write("v2/roctx_trace_77.csv", 'Domain,ROCTX_ID,Message,Timestamp\n\nROCTX_DOMAIN,0,"range",5\nROCTX_DOMAIN,0,,9\n')
        self.done("v2")
        ask = lambda text, file="v2.tacho": [tuple(row) for row in json.loads(self.run_command(
            TACHO, "query", file, "--dialect", "tacho", "--output-format", "json", text).stdout)["rows"]]
        self.assertEqual(self.kernels("v2.tacho"), [("add(int*)", 1, 30)])
        self.assertEqual(ask("SELECT f.name, count(*) FROM dispatch d JOIN api a ON a.correlation = d.correlation JOIN function f ON "
                             "f.id = a.dim GROUP BY 1"), [("hipLaunchKernel", 1)])
        self.assertEqual(ask("SELECT s.direction, d.duration FROM copy d JOIN copy_shape s ON s.id = d.dim"), [("host to device", 20)])
        self.assertEqual(ask("SELECT pid FROM process WHERE id > 0"), [(77,)])
        self.assertEqual(self.markers("v2.tacho"), [("range", "push/pop", 5, 4)])
        notes = [text for (text,) in ask("SELECT text FROM note")]
        self.assertTrue([text for text in notes if "rocprof v2 does not say which thread pushed and popped a ROCTx range" in text], notes)
        self.assertIn("v2/hcc_ops_trace_77.csv: 1 barrier, which is no work, was left out", notes)
        self.assertEqual(ask("SELECT count(*) FROM loss"), [(0,)])
        # If the profiler's own table exists, it has the kernels.
        self.write("v2/results_77.csv", "Dispatch_ID,GPU_ID,Queue_ID,PID,TID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Scratch_Per_Workitem,"
                   "Arch_VGPR,Accum_VGPR,SGPR,Wave_Size,Kernel_Name,Start_Timestamp,End_Timestamp,Correlation_ID\n"
                   '1,2,3,77,78,1024,64,512,0,8,4,16,64,"add(int*)",150,180,1\n')
        self.done("v2", "--overwrite")
        self.assertEqual(self.kernels("v2.tacho"), [("add(int*)", 1, 30)])
        self.assertEqual(ask("SELECT k.grid_x, k.registers FROM dispatch d JOIN kernel k ON k.id = d.dim"), [(1024, 8)])

    def test_recordings(self):
        """Recordings of rocprofv3 and rocmProfileData from hardware: as many kernels as the files hold."""
        need_data()
        for folder, files, kernels in (("json", ["traces/rocprofv3_gfx950_results.json.gz"], 43_915),
                                       ("rpd", ["rpd/mytrace.rpd"], None),
                                       ("both", ["rpd/matmul_result.rpd", "rpd/mytrace.rpd"], None)):
            with self.subTest(folder):
                (self.folder / folder).mkdir()
                alone = 0
                for file in files:
                    shutil.copy(DATA / file, self.folder / folder)
                    alone += sum(count for _, count, _ in self.kernels(DATA / file))
                self.done(folder)
                found = sum(count for _, count, _ in self.kernels(f"{folder}.tacho"))
                self.assertEqual(found, kernels if kernels is not None else alone)
                self.assertGreater(found, 0)

    def test_outputs_are_not_overwritten(self):
        self.write("out/1_kernel_trace.csv", KERNELS + self.row(1, "add", 1000, 1500))
        self.write("out.tacho", "mine")
        self.one_sentence(self.done("out", code=1), "out.tacho", "-o", "--overwrite")
        self.assertEqual((self.folder / "out.tacho").read_text(), "mine")
        self.done("out", "--overwrite")
        self.assertEqual(self.kernels("out.tacho"), [("add", 1, 500)])
        self.done("out", "-o", "other.tacho")
        self.assertEqual(self.kernels("other.tacho"), [("add", 1, 500)])

    def test_nothing_there(self):
        (self.folder / "empty").mkdir()
        self.one_sentence(self.done("empty", code=1), "empty")
        self.one_sentence(self.done("nowhere", code=1), "nowhere", "no such folder")
        self.write("file", "x")
        self.one_sentence(self.done("file", code=1), "file", "tacho stats")

    # ---- counters

    def table(self, folder, metric):
        result = self.run_command(TACHO, "analyze", "-p", folder, "-b", metric, "--output-format", "json")
        tables = {table["id"]: table for table in json.loads(result.stdout)["tables"]}
        return tables[metric]["rows"]

    def recorded(self):
        """A recording of rocprof-compute: its counters as (rows, names of counters)."""
        need_data()
        folder = DATA / "workloads" / "vcopy" / "MI200"
        rows = list(csv.DictReader((folder / "pmc_perf.csv").read_text().splitlines()))
        known = {"Dispatch_ID", "GPU_ID", "Grid_Size", "Workgroup_Size", "LDS_Per_Workgroup", "Scratch_Per_Workitem", "Arch_VGPR",
                 "Accum_VGPR", "SGPR", "Kernel_Name", "Start_Timestamp", "End_Timestamp"}
        names = [name for name in rows[0] if name.isupper() or name.startswith(("SQ", "TC", "GRBM", "TA_", "TD_", "SPI", "CP"))]
        return folder, rows, [name for name in names if name not in known and not name.endswith(tuple("._"))]

    def same(self, folder, imported, metric):
        """Cells that do not need the rest of the machine's description are equal."""
        before, after = self.table(folder, metric), self.table(imported, metric)
        self.assertTrue(any(isinstance(cell, (int, float)) and cell > 0 for row in before for cell in row["cells"]), before)
        self.assertEqual([row["cells"] for row in before], [row["cells"] for row in after])

    def test_counters_of_rocprofv3(self):
        folder, rows, names = self.recorded()
        header = ('"Correlation_Id","Dispatch_Id","Agent_Id","Queue_Id","Process_Id","Thread_Id","Grid_Size","Kernel_Id","Kernel_Name",'
                  '"Workgroup_Size","LDS_Block_Size","Scratch_Size","VGPR_Count","Accum_VGPR_Count","SGPR_Count","Counter_Name",'
                  '"Counter_Value","Start_Timestamp","End_Timestamp"\n')
        for part in range(3):  # three passes
            lines = [header]
            for number, row in enumerate(rows, 1):
                for name in names[part::3]:
                    lines.append(f'{number},{number},"Agent 4",1,9,9,{row["Grid_Size"]},1,"{row["Kernel_Name"]}",{row["Workgroup_Size"]},'
                                 f'0,0,8,0,16,"{name}",{row[name] or 0},{row["Start_Timestamp"]},{row["End_Timestamp"]}\n')
            self.write(f"out/pass_{part + 1}/9_counter_collection.csv", "".join(lines))
        self.write("out/pass_1/9_agent_info.csv",
                   '"Node_Id","Agent_Type","Name","Product_Name","Cu_Count","Simd_Per_Cu","Num_Shader_Banks","Wave_Front_Size",'
                   '"Max_Waves_Per_Cu","Workgroup_Max_Size","Num_Xcc"\n0,"CPU","EPYC","",0,0,0,0,0,0,0\n'
                   '4,"GPU","gfx90a","AMD Instinct MI250X",104,4,8,64,32,1024,1\n')
        result = self.done("out")
        self.assertEqual(result.stdout.decode().strip(), "out-profile")
        self.assertFalse((self.folder / "out.tacho").exists())
        self.same(folder, self.folder / "out-profile", "10.1")  # instruction mix
        self.same(folder, self.folder / "out-profile", "7.1")  # waves launched

        # ROCm 7's rocprofv3 writes databases instead.
        for part in (1, 2, 3):
            self.run_command(TACHO, "export", f"out/pass_{part}", "-f", "rocpd", "-o", f"pass_{part}.db")
            (self.folder / "databases").mkdir(exist_ok=True)
            shutil.move(self.folder / f"pass_{part}.db", self.folder / "databases" / f"pass_{part}_results.db")
        result = self.done("databases", "--arch", "gfx90a")
        self.assertEqual(result.stdout.decode().split(), ["databases.tacho", "databases-profile"])
        self.same(folder, self.folder / "databases-profile", "10.1")
        self.same(folder, self.folder / "databases-profile", "7.1")

    def test_counters_of_rocprof_v1(self):
        folder, rows, names = self.recorded()
        older = {"Dispatch_ID": "Index", "Kernel_Name": "KernelName", "GPU_ID": "gpu-id", "Grid_Size": "grd", "Workgroup_Size": "wgr",
                 "LDS_Per_Workgroup": "lds", "Scratch_Per_Workitem": "scr", "Arch_VGPR": "arch_vgpr", "Accum_VGPR": "accum_vgpr",
                 "SGPR": "sgpr", "Start_Timestamp": "BeginNs", "End_Timestamp": "EndNs"}
        path = self.folder / "rp" / "results.csv"
        path.parent.mkdir()
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([older[name] for name in older] + names)
            for row in rows:
                writer.writerow([row[name] for name in older] + [row[name] for name in names])
        self.one_sentence(self.done("rp", code=1), "--arch")
        self.write("rp/results.sysinfo.txt", "ROCk module is loaded\n  Name:                    gfx90a\n")
        self.done("rp")
        self.same(folder, self.folder / "rp-profile", "10.1")
        self.done("rp", "-o", "named", "--arch", "gfx90a")
        self.same(folder, self.folder / "named", "10.1")

    def test_folders_of_rocprof_compute(self):
        need_data()
        folder = DATA / "workloads" / "vcopy" / "MI200"
        shutil.copytree(folder, self.folder / "work" / "vcopy" / "MI200")
        self.done("work")
        self.same(folder, self.folder / "work-profile", "2.1")


if __name__ == "__main__":
    harness.main()
