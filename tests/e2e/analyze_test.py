"""`tacho analyze` and its personality, as a user runs them."""
import csv
import io
import json
import os
import pty
import re
import shutil
import sqlite3
import stat
import statistics
import subprocess
import unicodedata
import unittest

from harness import DATA, TACHO, Case, need_data

WORKLOADS = DATA / "workloads"
VCOPY = WORKLOADS / "vcopy" / "MI200"
SYNTH = WORKLOADS / "synth_a" / "MI200"
SYSINFO = (
    "workload_name,ip_blocks,gpu_model,gpu_arch,cu_per_gpu,simd_per_cu,se_per_gpu,wave_size,max_waves_per_cu,max_sclk,"
    "max_mclk,cur_sclk,cur_mclk,total_l2_chan,lds_banks_per_cu,sqc_per_gpu,pipes_per_gpu,num_xcd,num_hbm_channels\n"
    "w,SQ,MI200,gfx90a,104,4,8,64,32,1700,1600,1700,1600,32,32,56,4,1,32\n")


def width(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


class Analyze(Case):
    @classmethod
    def setUpClass(cls):
        need_data()

    def analyze(self, *arguments, code=0, **options):
        return self.run_command(TACHO, "analyze", *arguments, code=code, **options)

    def text(self, *arguments, **options):
        return self.analyze(*arguments, **options).stdout.decode()

    def json(self, *arguments, **options):
        return json.loads(self.analyze(*arguments, "--output-format", "json", **options).stdout)

    def cells(self, document, table):
        """{slug or first cell: {column: cell}} of one table."""
        found = next(t for t in document["tables"] if t["id"] == table)
        return {row.get("slug", row["cells"][0]): dict(zip(found["columns"], row["cells"])) for row in found["rows"]}

    def table(self, path):
        with open(path, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def sentence(self, *arguments, code=1, command="analyze"):
        """The one line that a refused command writes."""
        result = self.run_command(TACHO, command, *arguments, code=code)
        lines = result.stderr.decode().splitlines()
        self.assertEqual(result.stdout, b"")
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith("tacho: "), lines[0])
        return lines[0]

    def workload(self, counters, sysinfo=SYSINFO, name="w"):
        folder = self.folder / name
        folder.mkdir()
        (folder / "sysinfo.csv").write_text(sysinfo)
        (folder / "pmc_perf.csv").write_text(counters)
        return folder

    def personality(self, name, *arguments, code=0):
        link = self.folder / name
        if not link.exists():
            link.symlink_to(TACHO)
        return self.run_command(link, *arguments, code=code).stdout.decode()


class Reports(Analyze):
    def test_report_fits_eighty_columns(self):
        for workload in (VCOPY, SYNTH, WORKLOADS / "no_roof" / "MI300X_A1", WORKLOADS / "vcopy" / "MI350"):
            for line in (self.text("-p", workload) + self.text("-p", workload, "--full")).splitlines():
                if str(workload) in line:
                    continue
                chart = any(c in line for c in "┌┐│└┘▲▼")
                self.assertLessEqual(width(line), 120 if chart else 80, line)

    def test_report_has_every_block_and_no_colour_in_a_pipe(self):
        text = self.text("-p", SYNTH, "--full")
        for heading in ("0.1 Top Kernels", "2.1 Speed-of-Light", "3.1 Memory Chart", "4.1 Roofline", "17.3 ", "18.1 ", "Findings"):
            self.assertIn(heading, text)
        self.assertNotIn("\x1b", text)
        self.assertIn("ratios: totals over totals", text)
        self.assertIn("not computable:", text)

    def test_the_first_screen_is_one(self):
        """Kernels, findings with their evidence, bars, unmeasured blocks; the tables only on request."""
        text = self.text("-p", VCOPY)
        self.assertLessEqual(len(text.splitlines()), 40)
        order = [text.index(part) for part in ("Implausible", "\nKernels\n", "\nFindings\n", "Speed of Light, %", "--full")]
        self.assertEqual(order, sorted(order))
        self.assertRegex(text, r"1\. possible: Bound by memory bandwidth: up to 62 % of its time\n +Memory bandwidth of its roof = "
                               r"62\.22 \[\d\d\.\d\d, \d\d\.\d\d\] % \(> 60\)\n")
        self.assertNotIn("Not measured", text)
        self.assertNotIn("2.1.0", text)
        # Named by its folder, not by what somebody typed as a name ("path"); times with their units; kernels and findings apart.
        self.assertTrue(text.startswith(f"{VCOPY}\ngfx90a MI200, 104 compute units; 3 dispatches of 1 kernel, 52.32 us\n"), text[:200])
        self.assertRegex(text, r"\n  id  count +mean  % of time  kernel\n   0      3  17\.44 us +100\.00  vecCopy")
        self.assertRegex(text, r"\nFindings\n  kernel 0: vecCopy\(.*\n  1\. ")
        self.assertNotIn(" pct", text)
        self.assertRegex(self.text("-p", VCOPY, "-t", "ms"), r"count +mean \(ms\)  % of time  kernel\n   0      3 +0\.02 +100\.00")
        self.assertNotIn(" mean (", self.text("-p", SYNTH))
        # Half of the counters: the missing ones, and how to get them.
        few = self.text("-p", WORKLOADS / "ipblocks_SQ" / "MI200")
        self.assertIn("none of the 24 rules that could be judged found anything", few)
        self.assertRegex(few, r"Blocks: 5 Command Processor[^`]*`tacho\s+profile -b 5 15 16 18`")
        self.assertRegex(few, r"21 of 45 rules lack inputs:[^`]*`tacho\s+profile -b[ \d.\n]*17\.1")
        # Options of tables bring the tables; rocprof-compute's name its layout.
        for option in (["--full"], ["-b", "2"], ["--cols", "0", "Avg"], ["--errors"], ["--per-kernel"]):
            self.assertIn("2.1 Speed-of-Light", self.text("-p", VCOPY, *option), option)
        self.assertIn("2.1 Speed-of-Light", self.personality("rocprof-compute", "analyze", "-p", VCOPY))

    def test_equal_launches_get_the_same_first_finding(self):
        first = {self.json("-p", VCOPY, *choice)["findings"][0]["slug"]
                 for choice in ([], ["-d", "0"], ["-d", "1"], ["-d", "2"])}
        self.assertEqual(first, {"memory-bandwidth"})

    def test_what_cannot_be_is_said_in_json_too(self):
        document = self.json("-p", WORKLOADS / "no_roof" / "MI300A_A1")
        problems = {problem["check"]: problem for problem in document["implausible"]}
        self.assertEqual(problems["memory-peak"]["withheld"], ["Bound by memory bandwidth"])
        self.assertIn("1.33", problems["memory-peak"]["text"])
        self.assertNotIn("memory-bandwidth", {finding["slug"] for finding in document["findings"]})
        missing = self.json("-p", WORKLOADS / "ipblocks_SQ" / "MI200")
        self.assertEqual(len(missing["not_judged"]), 21)
        self.assertTrue(all(entry["collect"] and entry["missing"] for entry in missing["not_judged"]))

    def test_colour_and_width_on_a_terminal(self):
        master, slave = pty.openpty()
        process = subprocess.Popen([TACHO, "analyze", "-p", VCOPY, "-b", "2"], stdout=slave,
                                   env={**os.environ, "TERM": "xterm", "COLUMNS": "100"})
        os.close(slave)
        text = b""
        try:
            while chunk := os.read(master, 65536):
                text += chunk
        except OSError:
            pass
        os.close(master)
        self.assertEqual(process.wait(), 0)
        self.assertIn(b"\x1b[", text)

    def test_nothing_is_written_and_a_read_only_folder_does(self):
        folder = self.folder / "ro"
        shutil.copytree(VCOPY, folder, copy_function=shutil.copyfile)
        before = sorted(p.name for p in folder.iterdir())
        folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
        try:
            self.text("-p", folder)
        finally:
            folder.chmod(stat.S_IRWXU)
        self.assertEqual(sorted(p.name for p in folder.iterdir()), before)
        self.assertEqual(list(self.folder.iterdir()), [folder])

    def test_blocks_by_number_slug_alias_and_name(self):
        for choice in ("12", "lds", "local-data-share"):
            ids = {t["id"] for t in self.json("-p", VCOPY, "-b", choice)["tables"]}
            self.assertEqual(ids, {"0.1", "0.2", "12.1", "12.2"}, choice)
        for choice in ("11.2.3", "valu-utilization"):
            rows = self.cells(self.json("-p", VCOPY, "-b", choice), "11.2")
            self.assertEqual(list(rows), ["valu-utilization"])
        self.assertIn("valu-utilization", self.sentence("-p", VCOPY, "-b", "valu-utilisation"))
        self.assertIn("99", self.sentence("-p", VCOPY, "-b", "99"))

    def test_kernels_by_id_name_and_expression(self):
        everything = self.json("-p", SYNTH)
        names = [row["cells"][0] for row in everything["tables"][0]["rows"]]
        self.assertEqual(len(names), 5)
        saxpy = next(i for i, n in enumerate(names) if n.startswith("saxpy"))
        documents = [self.json("-p", SYNTH, "-b", "10.1", "-k", choice)
                     for choice in (str(saxpy), "saxpy(float, float const*, float*, unsigned int)", "saxpy", "^sax.y")]
        for document in documents:
            self.assertEqual(self.cells(document, "10.1"), self.cells(documents[0], "10.1"))
            self.assertEqual(len(document["tables"][0]["rows"]), 5, "-k does not filter the list of kernels")
        self.assertNotEqual(self.cells(documents[0], "10.1"), self.cells(everything, "10.1"))
        self.assertIn("0 to 4", self.sentence("-p", SYNTH, "-k", "5"))
        self.assertIn("--list-stats", self.sentence("-p", SYNTH, "-k", "nosuchkernel"))
        self.assertIn("regular expression", self.sentence("-p", SYNTH, "-k", "(*"))

    def test_dispatches_by_id_range_and_bound(self):
        def listed(*choice):
            return [row["cells"][0] for row in self.json("-p", SYNTH, "-b", "7.1", "-d", *choice)["tables"][1]["rows"]]
        self.assertEqual(listed("3"), [3])
        self.assertEqual(listed("3", "5:7", "9-10"), [3, 5, 6, 7, 9, 10])
        self.assertEqual(listed("> 37"), [38, 39])
        self.assertEqual(listed(">", "37"), [38, 39])
        self.assertIn("0 to 39", self.sentence("-p", SYNTH, "-d", "40"))
        self.assertIn("range", self.sentence("-p", SYNTH, "-d", "x"))

    def test_gpus(self):
        self.assertEqual(len(self.json("-p", SYNTH, "--gpu-id", "2")["tables"][1]["rows"]), 40)
        self.assertIn("the run has 2", self.sentence("-p", SYNTH, "--gpu-id", "7"))

    def test_normalisation_and_time_unit(self):
        kernel = self.cells(self.json("-p", SYNTH, "-d", "3"), "10.1")["insts-valu"]
        wave = self.cells(self.json("-p", SYNTH, "-d", "3", "-n", "per_wave"), "10.1")["insts-valu"]
        waves = float(self.table(SYNTH / "pmc_perf.csv")[3]["SQ_WAVES"])
        self.assertAlmostEqual(wave["Avg"] * waves, kernel["Avg"], delta=1e-6 * kernel["Avg"])
        self.assertEqual((kernel["Unit"], wave["Unit"]), ("Instr per kernel", "Instr per wave"))
        ns = self.cells(self.json("-p", SYNTH), "7.2")
        us = self.cells(self.json("-p", SYNTH, "-t", "us"), "7.2")
        self.assertAlmostEqual(us["kernel-time"]["Avg"] * 1000, ns["kernel-time"]["Avg"])
        self.assertEqual(us["kernel-time"]["Unit"], "us")
        instructions = next(s for s in ns if "instructions" in s)
        self.assertEqual(us[instructions], ns[instructions], "only times change with the time unit")

    def test_ratio_of_totals(self):
        mean = self.json("-p", SYNTH, "--ratio", "avg")
        total = self.json("-p", SYNTH)
        self.assertEqual((mean["ratio"], total["ratio"]), ("avg", "sum"))
        self.assertEqual(self.json("-p", SYNTH, "--compat", "3.3")["ratio"], "avg", "3.3 took means")
        self.assertEqual(self.json("-p", SYNTH, "--compat", "3.3", "--ratio", "sum")["ratio"], "sum")
        upstream = self.personality("rocprof-compute", "analyze", "-p", SYNTH, "-b", "11.2", "--decimal", "6")
        self.assertIn(f'{self.cells(total, "11.2")["valu-utilization"]["Avg"]:.6f}', upstream)
        valu = "valu-utilization"
        rows = self.table(SYNTH / "pmc_perf.csv")
        active = [float(r["SQ_ACTIVE_INST_VALU"]) for r in rows]
        cycles = [float(r["GRBM_GUI_ACTIVE"]) * 104 for r in rows]
        self.assertAlmostEqual(self.cells(total, "11.2")[valu]["Avg"], 100 * sum(active) / sum(cycles), places=9)
        self.assertAlmostEqual(self.cells(mean, "11.2")[valu]["Avg"],
                               sum(100 * a / c for a, c in zip(active, cycles)) / len(rows), places=9)
        self.assertEqual(self.cells(total, "11.2")[valu]["Max"], self.cells(mean, "11.2")[valu]["Max"])
        self.assertIn("totals over totals", self.text("-p", SYNTH, "-b", "11.2"))
        self.assertIn("means over the dispatches", self.text("-p", SYNTH, "--ratio", "avg", "-b", "11.2"))

    def test_two_copies_have_one_bandwidth(self):
        """2916 GB/s for 1 us and 120 GB/s for 24 us are 231.84 GB/s; their mean is nobody's. A dispatch that lacks one of
        both counts is in neither sum. Every screen says the same."""
        header = ("Dispatch_ID,Kernel_Name,GPU_ID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,TCC_REQ_sum,TCC_HIT_sum,TCC_MISS_sum,"
                  "Start_Timestamp,End_Timestamp\n")
        rows = ["0,k,0,1024,64,0,22781.25,90,10,1000,2000\n", "1,k,0,1024,64,0,22500,10,290,3000,27000\n"]
        lone = "2,k,0,1024,64,0,500,400,,30000,31000\n"
        for name, lines in (("two", rows), ("gap", [*rows, lone])):
            folder = self.workload(header + "".join(lines), name=name)
            hit = self.cells(self.json("-p", folder, "-b", "17"), "17.3")
            rate = next(hit[slug] for slug in hit if hit[slug]["Metric"] == "Cache Hit")
            self.assertAlmostEqual(rate["Avg"], 100 * 100 / 400, places=9)
            self.assertAlmostEqual(rate["Max"], 90, places=9)
            if name == "two":
                bandwidth = next(cells for cells in hit.values() if cells["Metric"] == "Bandwidth")
                self.assertAlmostEqual(bandwidth["Avg"], (2916 + 24 * 120) / 25, places=9)
                self.assertAlmostEqual(bandwidth["Max"], 2916, places=9)
        slug = next(slug for slug in hit if hit[slug]["Metric"] == "Cache Hit")
        explained = " ".join(self.text("-p", folder, "--explain", slug).split())
        self.assertIn("sum of (100 * TCC_HIT_sum) / sum of (TCC_HIT_sum + TCC_MISS_sum) over 2 dispatches: 10000 / 400", explained)

    def test_something_by_zero_is_no_value(self):
        issued = self.cells(self.json("-p", SYNTH, "-b", "11.2"), "11.2")["ipc-issued"]
        self.assertIsNone(issued["Max"])
        self.assertGreater(issued["Avg"], 0)
        self.assertEqual(self.cells(self.json("-p", SYNTH, "-b", "11.2", "--compat", "3.3"), "11.2")["ipc-issued"]["Max"], "inf")

    def test_error_of_a_ratio_of_totals(self):
        """var(R) = sum of n s^2(a - R b) over the launches / (sum of b)^2."""
        header = ("Dispatch_ID,Kernel_Name,GPU_ID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,TCC_HIT_sum,TCC_MISS_sum,"
                  "Start_Timestamp,End_Timestamp\n")
        launches = [(1024, [(90, 10), (80, 25), (95, 12)]), (4096, [(1000, 4000), (1300, 3900)])]
        flat = [(grid, hit, miss) for grid, repeats in launches for hit, miss in repeats]
        folder = self.workload(header + "".join(
            f"{i},k,0,{grid},64,0,{hit},{miss},{1000 * i},{1000 * i + 500}\n" for i, (grid, hit, miss) in enumerate(flat)), name="hits")
        above, below = [100 * hit for _, hit, _ in flat], [hit + miss for _, hit, miss in flat]
        ratio = sum(above) / sum(below)
        variance = sum(len(repeats) * statistics.variance([100 * hit - ratio * (hit + miss) for hit, miss in repeats])
                       for _, repeats in launches)
        table = next(t for t in self.json("-p", folder, "-b", "17.3")["tables"] if t["id"] == "17.3")
        row = next(r for r in table["rows"] if "Cache Hit" in r["cells"])
        self.assertAlmostEqual(row["error"], 3.182 * variance ** 0.5 / sum(below), places=9)
        self.assertRegex(self.text("-p", folder, "-b", "17.3", "--errors"), rf"Cache Hit +{ratio:.2f} +{row['error']:.2f} ")

    def test_columns_decimals_and_descriptions(self):
        text = self.text("-p", VCOPY, "-b", "11.2", "--cols", "0", "Max", "--decimal", "4")
        self.assertRegex(text, r"VALU Utilization\s+5\.3500\n|VALU Utilization\s+5\.\d{4}\n")
        self.assertNotIn("Avg", text)
        self.assertIn("vector arithmetic instruction", self.text("-p", VCOPY, "-b", "11.2.3", "--include-cols", "Description"))
        self.assertIn("counted from 0", self.sentence("-p", VCOPY, "--cols", "77"))
        self.assertIn("Description", self.sentence("-p", VCOPY, "--include-cols", "Secret"))

    def test_top_stats_are_limited_and_say_so(self):
        text = self.text("-p", SYNTH, "--list-stats", "--max-stat-num", "2")
        self.assertIn("3 more kernels", text)
        self.assertIn("38 more dispatches", text)
        self.assertNotIn("Speed-of-Light", text)

    def test_lists(self):
        for arch, metrics in (("gfx908", 322), ("gfx90a", 368), ("gfx942", 370), ("gfx950", 440), ("mi300x", 370)):
            lines = self.text("--list-metrics", arch).splitlines()
            self.assertGreaterEqual(sum(bool(re.match(r" +\d+\.\d+\.\d+ -> ", line)) for line in lines), metrics, arch)
        self.assertIn("               2.1.2 -> MFMA FLOPs (F8)", self.text("--list-metrics", "gfx942").splitlines())
        self.assertRegex(self.text("--list-blocks", "gfx90a"), r"(?m)^12 .*lds")
        self.assertIn("gfx942", self.sentence("--list-metrics", "gfx123"))

    def test_roofline(self):
        text = self.text("-p", SYNTH, "-b", "4", "-R", "FP32", "FP64", "-m", "HBM")
        self.assertRegex(text, r"valu +FP64 +17127\.40 +GFLOP/s")
        self.assertRegex(text, r"hbm +1173\.45 +GB/s")
        self.assertNotIn("l2 ", text.split("roof  of")[1])
        self.assertRegex(text, r"#.*bound +%")
        self.assertRegex(text, r"(?m)^ +10k ┤")
        self.assertIn("--mem-level", self.sentence("-p", SYNTH, "-m", "L9"))
        self.assertIn("no roofline.csv", self.text("-p", WORKLOADS / "synth_a" / "MI350", "-b", "roofline"))

    def test_errors_from_repeats(self):
        """Three runs of one launch: Student's t with two degrees of freedom. A launch without repeats has no error."""
        header = "Dispatch_ID,Kernel_Name,GPU_ID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,SQ_INSTS_SALU,GRBM_GUI_ACTIVE,Start_Timestamp,End_Timestamp\n"
        rows = [f"{i},k,0,{grid},64,0,{salu},100,{1000 * i},{1000 * i + 500}\n"
                for i, (grid, salu) in enumerate([(1024, 10), (1024, 12), (1024, 17), (2048, 40), (2048, 44)])]
        def error(count, name):
            folder = self.workload(header + "".join(rows[:count]), name=name)
            table = next(t for t in self.json("-p", folder, "-b", "10.1")["tables"] if t["id"] == "10.1")
            return next(row for row in table["rows"] if row["slug"] == "insts-salu").get("error")
        first, second = [10, 12, 17], [40, 44]
        self.assertAlmostEqual(error(3, "three"), 4.303 * statistics.stdev(first) / 3 ** 0.5, places=9)
        # Two launches: their variances add up by their shares; three degrees of freedom.
        variance = 3 * statistics.variance(first) + 2 * statistics.variance(second)
        self.assertAlmostEqual(error(5, "five"), 3.182 * variance ** 0.5 / 5, places=9)
        self.assertIsNone(error(4, "four"))
        self.assertIsNone(error(1, "one"))
        text = self.text("-p", self.folder / "three", "-b", "10.1", "--errors")
        self.assertRegex(text, r"(?m)^ +10\.1\.4 +SALU +13\.00 +8\.96 ")
        self.assertNotIn("±", self.text("-p", self.folder / "one", "-b", "10.1", "--errors"))
        # Where there is none, one line says why.
        def said(name, *options, block="10.1"):
            stderr = self.run_command(TACHO, "analyze", "-p", self.folder / name, "-b", block, *options).stderr.decode()
            return [line.removeprefix("tacho: no errors: ") for line in stderr.splitlines() if "no errors" in line]
        self.workload(header + "".join(rows[:3]) + "8,other,0,1024,64,0,7,100,9000,9500\n", name="two kernels")
        missing = "no repeat (same kernel, grid, workgroup and LDS size)"
        for name, overall, of_kernels in (("one", [f"1 launch has {missing}"], [f"1 launch has {missing}"]),
                                          ("three", [], []), ("four", [f"1 launch has {missing}"], [f"1 launch has {missing}"]),
                                          ("five", [], []), ("two kernels", [f"1 launch has {missing}"], [])):
            with self.subTest(name):
                self.assertEqual(said(name, "--errors"), overall)
                self.assertEqual(said(name, "--errors", "--per-kernel"), of_kernels)
                self.assertEqual(said(name), [])
        self.assertEqual(said("two kernels", "--errors", "--per-kernel", "-k", "1"), [f"1 launch has {missing}"])
        self.assertEqual(said("three", "--errors", block="3"), ["the chosen tables hold no mean for which repeats give one"])

    def sampled(self, rows, header="Instruction,Instruction_Comment,Wave_Issued_Instruction,Stall_Reason"):
        folder = self.folder / "sampled"
        folder.mkdir(exist_ok=True)
        (folder / "sysinfo.csv").write_text(SYSINFO)
        (folder / "ps_file_kernel_trace.csv").write_text(
            "Kind,Agent_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Start_Timestamp,End_Timestamp\n"
            'KERNEL_DISPATCH,4,1,16,"axpy<float, 4>",100,1100\nKERNEL_DISPATCH,4,2,17,copy,2000,2500\n')
        (folder / "ps_file_pc_sampling_stochastic.csv").write_text("\n".join(["Sample_Timestamp,Dispatch_Id," + header, *rows]) + "\n")
        return folder

    def test_folders_of_newer_versions(self):
        """Files by process, rocprofv3's own files in out/<pass>/<host>, and the names of 3.4 to 3.9."""
        folder = self.folder / "newer"
        folder.mkdir()
        (folder / "sysinfo.csv").write_text(SYSINFO.replace("num_hbm_channels", "num_memory_channels"))
        header = "Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size,Kernel_Id,Kernel_Name,Workgroup_Size," \
                 "LDS_Block_Size,Scratch_Size,VGPR_Count,SGPR_Count,Counter_Name,Counter_Value,Start_Timestamp,End_Timestamp\n"
        for number, counters in enumerate((("TCC_HIT_sum", 90, 10), ("TCC_MISS_sum", 10, 290))):
            host = folder / "out" / f"pmc_{number}" / "node7"
            host.mkdir(parents=True)
            (host / "83_counter_collection.csv").write_text(header + "".join(
                f'{i},{i},Agent 4,1,83,83,1024,1,"k",64,0,0,8,16,{counters[0]},{value},{1000 * i},{1000 * i + 500}\n'
                for i, value in enumerate(counters[1:], 1)))
        rows = self.cells(self.json("-p", folder, "-b", "17.3"), "17.3")
        self.assertAlmostEqual(next(row["Avg"] for row in rows.values() if row["Metric"] == "Cache Hit"), 25, places=9)
        self.assertEqual(self.json("-p", folder)["tables"][0]["rows"][0]["cells"][:2], ["k", 2])
        self.assertIn("2.1.7", self.text("-p", VCOPY, "-b", "CU Utilization"))
        self.assertIn("% of peak", self.text("-p", VCOPY, "-b", "2", "--cols", "0", "Percent of Peak"))
        # Samples of two processes, and samples that only JSON holds.
        trace = "Kind,Agent_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Start_Timestamp,End_Timestamp\n"
        for pid, kernel in ((83, "axpy"), (95, "copy")):
            (folder / f"{pid}_ps_file_kernel_trace.csv").write_text(trace + f"KERNEL_DISPATCH,4,1,16,{kernel},100,1100\n")
            (folder / f"{pid}_ps_file_pc_sampling_host_trap.csv").write_text(
                "Sample_Timestamp,Dispatch_Id,Instruction,Instruction_Comment\n" + "1,1,v_nop,\n" * (pid - 80))
        table = next(t for t in self.json("-p", folder)["tables"] if t["id"] == "21.1")
        self.assertEqual(sorted(row["cells"][2:4] for row in table["rows"]), [["axpy", 3], ["copy", 15]])
        for file in folder.glob("*_ps_file_*.csv"):
            file.unlink()
        (folder / "83_ps_file_results.json").write_text("{}")
        result = self.analyze("-p", folder)
        self.assertIn("83_ps_file_results.json: holds no PC samples", result.stderr.decode())

    def sample_json(self, kernel="axpy", stochastic=True, samples=((1, 0, 0, "WAITCNT"), (1, 0, 1, "NONE"), (2, 1, 0, "ALU_DEPENDENCY"))):
        """rocprofv3's JSON of PC samples: (dispatch, instruction, issued, reason) each; the names come last."""
        records = [{"record": {"hw_id": {"chiplet": 1}, "pc": {"code_object_id": 2, "code_object_offset": 16 * i}, "exec_mask": 18446744073709551615,
                               "timestamp": 5, "dispatch_id": dispatch, "corr_id": {"internal": 1, "external": 0},
                               **({"wave_issued": issued, "inst_type": "VALU", "wave_cnt": 3,
                                   "snapshot": {"stall_reason": "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_" + reason,
                                                "dual_issue_valu": 0}} if stochastic else {})}, "inst_index": instruction}
                   for i, (dispatch, instruction, issued, reason) in enumerate(samples)]
        kind, other = ("pc_sample_stochastic", "pc_sample_host_trap")[::1 if stochastic else -1]
        return json.dumps({"rocprofiler-sdk-tool": [{
            "metadata": {"pid": 83},
            "buffer_records": {kind: records, other: [], "kernel_dispatch": [
                {"thread_id": 7, "start_timestamp": 100, "end_timestamp": 1100, "dispatch_info": {"agent_id": {"handle": 4}, "kernel_id": 16, "dispatch_id": 1}},
                {"thread_id": 7, "start_timestamp": 2000, "end_timestamp": 2500, "dispatch_info": {"agent_id": {"handle": 4}, "kernel_id": 17, "dispatch_id": 2}}]},
            "kernel_symbols": [{"kernel_id": 16, "kernel_name": "_Zx", "formatted_kernel_name": kernel}, {"kernel_id": 17, "formatted_kernel_name": 'co"py'}],
            "strings": {"pc_sample_instructions": ["s_waitcnt", "v_add"], "pc_sample_comments": ["a.cpp:7", "b.cpp:1"]}}]})

    def test_samples_that_only_json_holds(self):
        folder = self.folder / "json"
        folder.mkdir()
        (folder / "sysinfo.csv").write_text(SYSINFO)
        file = folder / "83_ps_file_results.json"
        file.write_text(self.sample_json())
        result = self.analyze("-p", folder, "--output-format", "json")
        self.assertEqual(result.stderr, b"")
        document = json.loads(result.stdout)
        table = next(t for t in document["tables"] if t["id"] == "21.1")
        self.assertEqual([row["cells"] for row in table["rows"]], [
            ["s_waitcnt", "a.cpp:7", "axpy", 2, 2 / 3 * 100, 50, "waitcnt 50 %"], ["v_add", "b.cpp:1", 'co"py', 1, 1 / 3 * 100, 0, "alu dependency 100 %"]])
        self.assertEqual([row["cells"][:3] for row in document["tables"][0]["rows"]], [["axpy", 1, 1000], ['co"py', 1, 500]])
        # Several processes have numbers of their own; host_trap tells no reasons; what is not disassembled keeps its place.
        (folder / "95_ps_file_results.json").write_text(self.sample_json("gemm", samples=((1, 0, 0, "WAITCNT"), (9, -1, 1, "NONE"))))
        rows = [row["cells"] for t in self.json("-p", folder)["tables"] if t["id"] == "21.1" for row in t["rows"]]
        self.assertEqual(sorted((row[2], row[0], row[3]) for row in rows), [("", "", 1), ("axpy", "s_waitcnt", 2), ('co"py', "v_add", 1), ("gemm", "s_waitcnt", 1)])
        self.assertIn("Unrecognized code object id, physical virtual address of PC:16", [row[1] for row in rows])
        (folder / "95_ps_file_results.json").unlink()
        file.write_text(self.sample_json(stochastic=False))
        table = next(t for t in self.json("-p", folder)["tables"] if t["id"] == "21.1")
        self.assertEqual(table["columns"], ["Instruction", "Source", "Kernel_Name", "Samples", "Pct"])
        # Damage is named with its place, and costs what stands behind it.
        text = self.sample_json()
        for damaged, needle in ((text[:text.index("kernel_symbols")], "83_ps_file_results.json"), ("[1]", "83_ps_file_results.json"), ("", "83_ps_file_results.json")):
            file.write_text(damaged)
            self.assertIn(needle, self.sentence("-p", folder))

    def test_pc_samples(self):
        reason = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_"
        rows = [f'{i},1,"s_waitcnt vmcnt(0)",/src/a.cpp:43,{int(i < 2)},{"" if i < 2 else reason + "WAITCNT"}' for i in range(8)]
        rows += [f"{i},2,s_endpgm,/src/a.cpp:9,0,{reason}ALU_DEPENDENCY" for i in range(3)]
        rows += [f"{i},1,v_nop,/src/a.cpp:7,1," for i in range(1)]
        folder = self.sampled(rows)
        document = self.json("-p", folder)
        table = next(t for t in document["tables"] if t["id"] == "21.1")
        self.assertEqual(table["columns"], ["Instruction", "Source", "Kernel_Name", "Samples", "Pct", "Issued pct", "Stalled by"])
        self.assertEqual([row["cells"] for row in table["rows"]], [
            ["s_waitcnt vmcnt(0)", "/src/a.cpp:43", "axpy<float, 4>", 8, 8 / 12 * 100, 25, "waitcnt 75 %"],
            ["s_endpgm", "/src/a.cpp:9", "copy", 3, 25, 0, "alu dependency 100 %"],
            ["v_nop", "/src/a.cpp:7", "axpy<float, 4>", 1, 1 / 12 * 100, 100, ""]])
        self.assertEqual([row["cells"][0] for row in document["tables"][0]["rows"]], ["axpy<float, 4>", "copy"])
        text = self.text("-p", folder, "-b", "21")
        self.assertIn("21.1 PC Sampling, stochastic: % of all samples, issued % of the row's\n", text)
        self.assertRegex(text, r"(?m)^ +8 +66\.67 +25\.00 +0 +s_waitcnt vmcnt\(0\) +a\.cpp:43 +waitcnt 75 %$")
        only = self.json("-p", folder, "-k", "copy")
        self.assertEqual([row["cells"][3:5] for t in only["tables"] if t["id"] == "21.1" for row in t["rows"]], [[3, 100]])
        self.assertIn("2 more instructions (--pc-sampling-rows)", self.text("-p", folder, "-b", "21", "--pc-sampling-rows", "1"))
        self.assertIn("2 more instructions (--max-stat-num)", self.text("-p", folder, "-b", "21", "--max-stat-num", "1"))
        self.assertIn("v_nop", self.text("-p", folder, "-b", "21", "--max-stat-num", "1", "--pc-sampling-rows", "0"))
        self.assertIn("--pc-sampling-rows", self.sentence("-p", folder, "--pc-sampling-rows", "-1"))
        by_line = self.text("-p", folder, "-b", "21", "--pc-sampling-sorting-type", "offset")
        self.assertLess(by_line.index("a.cpp:7"), by_line.index("a.cpp:43"))
        self.assertNotIn("21.1", self.text("-p", folder, "-b", "2"))
        self.text("-p", folder, "-b", "21", "--save-dfs", self.folder / "out")
        self.assertEqual(len(self.table(self.folder / "out" / "21.1_PC_Sampling.csv")), 3)

    def test_bad_pc_samples(self):
        folder = self.sampled(["1,1,v_nop,,1,", "2,1,v_nop", "3,99,v_nop,,1,"])
        result = self.analyze("-p", folder, "-b", "21")
        self.assertIn("ps_file_pc_sampling_stochastic.csv: row 3", result.stderr.decode())
        for damage in ("", "Sample_Timestamp,Dispatch_Id,Instruction\n", "a,b\n1,2\n"):
            (folder / "ps_file_pc_sampling_stochastic.csv").write_text(damage)
            self.assertIn("ps_file_pc_sampling_stochastic.csv", self.sentence("-p", folder))

    def test_lists_of_the_runs_own_architecture(self):
        self.assertEqual(self.text("-p", SYNTH, "--list-metrics"), self.text("--list-metrics", "gfx90a"))

    def test_explain(self):
        text = self.text("-p", SYNTH, "--explain", "valu-utilization")
        value = self.cells(self.json("-p", SYNTH), "11.2")["valu-utilization"]["Avg"]
        self.assertIn(f"result: {value!r}", text)
        self.assertIn("SQ_ACTIVE_INST_VALU", text)
        self.assertIn("block or table", self.sentence("-p", SYNTH, "--explain", "11"))

    def test_per_kernel(self):
        document = self.json("-p", SYNTH, "-b", "10.1", "--per-kernel")
        self.assertEqual(len(document["kernels"]), 5)
        for kernel in document["kernels"]:
            alone = self.json("-p", SYNTH, "-b", "10.1", "-k", str(kernel["id"]))
            self.assertEqual(self.cells(kernel, "10.1"), self.cells(alone, "10.1"))
        self.assertEqual(self.text("-p", SYNTH, "-b", "10.1", "--per-kernel").count("10.1 Overall"), 5)

    def test_specification_values_can_be_corrected(self):
        peak = self.cells(self.json("-p", VCOPY, "--specs-correction", "max_sclk:850,cu_per_gpu:52"), "2.1")["sol-valu-flops"]["Peak"]
        self.assertAlmostEqual(peak, 22630.4 / 4)
        self.assertIn("max_sclk", self.sentence("-p", VCOPY, "--specs-correction", "sclk:3"))
        self.assertIn("not a number", self.sentence("-p", VCOPY, "--specs-correction", "max_sclk:fast"))
        self.assertIn("name:value", self.sentence("-p", VCOPY, "--specs-correction", "max_sclk"))

    def test_findings_have_computable_evidence(self):
        document = self.json("-p", SYNTH)
        self.assertTrue(document["findings"])
        per_kernel = {}
        for finding in document["findings"]:
            per_kernel[finding["kernel"]] = per_kernel.get(finding["kernel"], 0) + 1
            self.assertTrue(finding["evidence"])
            self.assertTrue(finding["meaning"] and finding["advice"])
            for evidence in finding["evidence"]:
                self.assertIsInstance(evidence["value"], (int, float))
                self.assertLessEqual(evidence["low"], evidence["value"])
                self.assertGreaterEqual(evidence["high"], evidence["value"])
            self.assertLessEqual(finding["saves"]["low"], finding["saves"]["high"])
            self.assertAlmostEqual(finding["severity"], (finding["saves"]["low"] + finding["saves"]["high"]) / 200)
        weights = [finding["severity"] * finding["share"] for finding in document["findings"]]
        self.assertEqual(weights, sorted(weights, reverse=True))
        self.assertLessEqual(max(per_kernel.values()), 5)
        self.assertEqual(self.json("-p", SYNTH, "--no-advice")["findings"], [])
        self.assertNotIn("Findings", self.text("-p", SYNTH, "--no-advice"))
        # Nothing but L2 counters: findings use only these.
        for finding in self.json("-p", WORKLOADS / "ipblocks_TCC" / "MI300X_A1")["findings"]:
            for evidence in finding["evidence"]:
                self.assertIsNotNone(evidence["value"])

    def test_own_metrics_and_rules(self):
        config = self.folder / "mine"
        config.mkdir()
        (config / "mine.yaml").write_text(
            "block: 11\ntables:\n  - table: 2\n    metrics:\n      - slug: my-metric\n        name: My metric\n        unit: pct\n"
            "        kind: ratio\n        value: 100 * SQ_WAVES / SQ_WAVES\n        description: Always hundred.\n        advice: None needed.\n")
        rows = self.cells(self.json("-p", VCOPY, "-b", "my-metric", "--config-dir", config), "11.2")
        self.assertEqual(rows["my-metric"]["Avg"], 100)
        (config / "mine.yaml").write_text("block: 11\ntables: [\n")
        self.assertRegex(self.sentence("-p", VCOPY, "--config-dir", config), r"mine\.yaml:\d+:\d+")


class Comparisons(Analyze):
    def test_two_runs_side_by_side(self):
        text = self.text("-p", VCOPY, SYNTH, "-b", "11.2")
        self.assertRegex(text, r"VALU Utilization\s+4\.19\s+92\.93\s+\+2115\.58%")
        document = self.json("-p", VCOPY, "-p", SYNTH, "-b", "11.2")
        self.assertEqual(len(document["runs"]), 2)
        self.assertEqual([r["workloads"][0]["path"] for r in document["runs"]], [str(VCOPY), str(SYNTH)])
        row = next(r for r in document["comparison"] if r["slug"] == "valu-utilization")
        self.assertAlmostEqual(row["percent"][1], (row["values"][1] - row["values"][0]) / row["values"][0] * 100)

    def test_baseline_comes_first_and_other_architectures_match_by_slug(self):
        document = self.json("-p", WORKLOADS / "no_roof" / "MI300X_A1", "--baseline", VCOPY)
        self.assertEqual(document["workloads"][0]["arch"], "gfx90a")
        slugs = {row["slug"] for row in document["comparison"]}
        self.assertIn("sol-l2-bandwidth" if "sol-l2-bandwidth" in slugs else "valu-utilization", slugs)
        self.assertGreater(len(slugs), 250)

    def test_fail_above(self):
        result = self.analyze("-p", VCOPY, SYNTH, "-b", "11.2", "--fail-above", "20", code=3)
        self.assertRegex(result.stderr.decode(), r"^tacho: 11\.2\.\d+ \w.* changed (from 0|by \d+\.\d\d %) in run 1 ")
        self.analyze("-p", VCOPY, WORKLOADS / "kernel" / "MI200", "-b", "7.1", "--fail-above", "20", code=0)
        self.assertIn("at least two", self.sentence("-p", VCOPY, "--fail-above", "20"))
        self.assertIn("twice", self.sentence("-p", VCOPY, "-p", VCOPY))

    def test_large_changes_are_marked(self):
        text = self.text("-p", VCOPY, SYNTH, "-b", "11.2", "--report-diff", "90")
        self.assertRegex(text, r"VALU Utilization.*! \+2115")
        self.assertNotRegex(text, r"IPC +0.*!")
        boxed = self.personality("rocprof-compute", "analyze", "-p", VCOPY, SYNTH, "-b", "11.2", "--report-diff", "90")
        self.assertRegex(boxed, r"VALU Utilization.*! 92\.93 \(2115")

    def test_the_biggest_changes_come_first_under_the_names_of_the_runs(self):
        text = self.text("-p", VCOPY, WORKLOADS / "kernel" / "MI200")
        self.assertRegex(text, r"(?m)^vcopy  /.*\n.*\nkernel  /")
        self.assertRegex(text, r" vcopy +kernel +change  kernel, mean time\n +17\.44 us +17\.39 us +-0\.3 %")
        chosen = self.text("-p", VCOPY, WORKLOADS / "kernel" / "MI200", "-t", "ns")
        self.assertRegex(chosen, r" vcopy \(ns\) +kernel \(ns\) +change  kernel, mean time\n +17440\.00 +17386\.67 +-0\.3 %")
        changes = text[text.index("Biggest changes"):]
        self.assertEqual(len([line for line in changes.splitlines() if re.match(r"  \d+\.\d+\.\d+ ", line)]), 10)
        self.assertRegex(changes, r"(?m)^  \d+ more metrics changed")
        self.assertIn("Findings, kernel against vcopy", text)
        # Findings that came and went: the same folder with conflicts planted.
        folder = self.folder / "conflicts"
        shutil.copytree(VCOPY, folder, copy_function=shutil.copyfile)
        rows = self.table(VCOPY / "pmc_perf.csv")
        for row in rows:
            row["GRBM_GUI_ACTIVE"] = str(int(float(row["End_Timestamp"]) - float(row["Start_Timestamp"])))
            row["SQ_LDS_IDX_ACTIVE"] = str(int(row["GRBM_GUI_ACTIVE"]) * 104 // 2)
            row["SQ_LDS_BANK_CONFLICT"] = str(int(row["GRBM_GUI_ACTIVE"]) * 104 // 3)
        with open(folder / "pmc_perf.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        text = self.text("-p", VCOPY, folder)
        self.assertRegex(text, r"(?m)^  \+ Bank conflicts in the local data share: up to 3\d % of its time")
        self.assertRegex(self.text("-p", folder, VCOPY), r"(?m)^  - Bank conflicts in the local data share")
        full = self.text("-p", VCOPY, folder, "--full")
        for heading in ("1.1 System Info, where the runs differ", "3.1 Memory Chart", "4.1 Roofline", "Avg MI200"):
            self.assertIn(heading, full)


class Outputs(Analyze):
    def test_files_are_whole_new_and_never_replaced_unasked(self):
        name = self.folder / "report"
        self.analyze("-p", VCOPY, "-b", "2", "--output-format", "json", "--output-name", name)
        self.assertEqual(json.loads((self.folder / "report.json").read_text())["schema"], "tacho-analysis/1")
        self.assertIn("--overwrite", self.sentence("-p", VCOPY, "--output-format", "json", "--output-name", name))
        self.analyze("-p", VCOPY, "-b", "2", "--output-format", "json", "--output-name", name, "--overwrite")
        self.analyze("-p", VCOPY, "-b", "2", "--output-name", self.folder / "report.txt")
        self.assertIn("2.1 Speed-of-Light", (self.folder / "report.txt").read_text())
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["report.json", "report.txt"])

    def test_csv(self):
        rows = list(csv.DictReader(io.StringIO(self.text("-p", SYNTH, "--output-format", "csv"))))
        value = self.cells(self.json("-p", SYNTH), "11.2")["valu-utilization"]["Avg"]
        found = [r for r in rows if r["slug"] == "valu-utilization" and r["column"] == "Avg"]
        self.assertEqual([float(r["value"]) for r in found], [value])
        self.analyze("-p", SYNTH, "--output-format", "csv", "--output-name", self.folder / "tables")
        self.assertTrue((self.folder / "tables" / "2.1_Speed-of-Light.csv").is_file())

    def test_saved_tables_are_in_full_precision(self):
        folder = self.folder / "dfs"
        self.analyze("-p", SYNTH, "-b", "2", "11.2", "--save-dfs", folder)
        rows = self.table(folder / "11.2_Pipeline_Statistics.csv")
        value = self.cells(self.json("-p", SYNTH), "11.2")["valu-utilization"]
        row = next(r for r in rows if r["Metric"] == "VALU Utilization")
        self.assertEqual((float(row["Avg"]), row["Unit"]), (value["Avg"], "pct"))
        names = [r["Kernel_Name"] for r in self.table(folder / "0.1_Top_Kernels.csv")]
        self.assertIn('void trace::log_kernel<fixed_string<5ul>{"a\\"b,c"}, std::pair<int, double> >(int*, long, char const (&) [6])', names)

    def test_html_holds_the_data_and_no_way_out_of_its_script(self):
        folder = self.workload("Dispatch_ID,Kernel_Name,SQ_WAVES,GRBM_GUI_ACTIVE,Start_Timestamp,End_Timestamp\n"
                               "0,</script><script>alert(1)</script>,1,2,3,4\n")
        page = self.text("-p", folder, "--output-format", "html")
        self.assertTrue(page.lower().startswith("<!doctype html>"))
        self.assertNotIn("<script>alert(1)", page)
        self.assertIn("\\u003c/script>", page)
        self.assertIn('"schema": "tacho-analysis/1"', page)

    def test_gui_options(self):
        for choice in (["--gui", "x"], ["--gui", "0"], ["--gui", "70000"]):
            self.assertIn("port", self.sentence("-p", VCOPY, *choice))
        self.assertIn("--random-port", self.sentence("-p", VCOPY, "--gui", "8123", "--random-port"))
        self.assertIn("one of them", self.sentence("-p", VCOPY, "--gui", "--output-format", "json"))
        self.assertIn("one of them", self.sentence("-p", VCOPY, "--gui", "--output-name", "x"))


# Schema 2.0.0 of rocprof-compute's analysis database: tables and views with their columns.
ANALYSIS_SCHEMA = {
    "compute_workload": "workload_id name sub_name sys_info_extdata roofline_bench_extdata profiling_config_extdata",
    "compute_metric_definition": "metric_uuid workload_id name metric_id description table_name sub_table_name unit",
    "compute_kernel_roofline_data": "roofline_uuid kernel_uuid total_flops l0_cache_data l1_cache_data l2_cache_data hbm_cache_data lds_cache_data",
    "compute_workload_roofline_data": "roofline_uuid workload_id total_flops l0_cache_data l1_cache_data l2_cache_data hbm_cache_data lds_cache_data",
    "compute_dispatch": "dispatch_uuid kernel_uuid dispatch_id gpu_id start_timestamp end_timestamp",
    "compute_kernel": "kernel_uuid workload_id kernel_name",
    "compute_code_object_store": "code_object_uuid workload_id pid code_object_id load_base",
    "compute_instruction_line": "instruction_uuid code_object_uuid kernel_uuid code_object_offset comment instruction",
    "compute_pc_sample_state": "pc_sample_state_uuid instruction_uuid total_count issue_count stall_count",
    "compute_pc_sample_stall_reason_type": "pc_sample_stall_reason_type_uuid text",
    "compute_pc_sample_stall_reason": "pc_sample_stall_reason_uuid pc_sample_state_uuid pc_sample_stall_reason_type_uuid count",
    "compute_instruction_sample_type": "instruction_sample_type_uuid text",
    "compute_instruction_sample": "instruction_sample_uuid pc_sample_state_uuid instruction_sample_type_uuid count",
    "compute_kernel_metric_value": "value_uuid metric_uuid kernel_uuid value_name value",
    "compute_workload_metric_value": "value_uuid metric_uuid workload_id value_name value",
    "compute_metadata": "id compute_version git_version schema_version",
    "compute_kernel_view": "kernel_uuid workload_id workload_name kernel_name dispatch_count duration_ns_sum duration_ns_min duration_ns_max "
                           "duration_ns_median duration_ns_mean",
    "compute_kernel_metric_view": "workload_id workload_name kernel_uuid kernel_name metric_uuid metric_name metric_id description table_name "
                                  "sub_table_name unit value_uuid value_name value",
    "compute_workload_metric_view": "workload_id workload_name metric_uuid metric_name metric_id description table_name sub_table_name unit "
                                    "value_uuid value_name value",
    "compute_pc_sampling_view": "workload_id kernel_uuid kernel_name offset instruction source count count_issue count_stall stall_reason",
}


class AnalysisDatabase(Analyze):
    """--output-format db: the database that ROCm Optiq opens."""

    def database(self, *arguments, name="a"):
        self.assertEqual(self.analyze(*arguments, "--output-format", "db", "--output-name", self.folder / name).stdout, b"")
        database = sqlite3.connect(self.folder / f"{name}.db")
        self.addCleanup(database.close)
        database.row_factory = sqlite3.Row
        return database

    def test_tables_and_columns_are_those_of_the_schema(self):
        database = self.database("-p", SYNTH)
        made = {name: " ".join(row["name"] for row in database.execute(f"PRAGMA table_info({name})"))
                for name, in database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")}
        self.assertEqual(made, ANALYSIS_SCHEMA)
        self.assertEqual([tuple(row) for row in database.execute("PRAGMA integrity_check")], [("ok",)])
        self.assertEqual(list(database.execute("PRAGMA foreign_key_check")), [])
        self.assertEqual([row["schema_version"] for row in database.execute("SELECT * FROM compute_metadata")], ["2.0.0"])
        keys = {name: [row["name"] for row in database.execute(f"PRAGMA table_info({name})") if row["pk"]] for name in ANALYSIS_SCHEMA}
        for name, columns in ANALYSIS_SCHEMA.items():
            self.assertEqual(keys[name], [] if name.endswith("_view") else [columns.split()[0]])

    def of_document(self, tables):
        """{(id, column): value} of the JSON's tables of metrics."""
        values = {}
        for table in tables:
            for row in table["rows"] if not table["id"].startswith(("0.", "1.")) else ():
                for column, cell in zip(table["columns"], row["cells"]):
                    if isinstance(cell, (int, float)) and "id" in row and column != "Channel":
                        values[row["id"], "Percent of Peak" if column == "Pct of Peak" else column] = cell
        return values

    def test_values_are_those_of_the_tables(self):
        document = self.json("-p", SYNTH, "--per-kernel")
        database = self.database("-p", SYNTH)
        stored = {(row["metric_id"], row["value_name"]): row["value"] for row in database.execute("SELECT * FROM compute_workload_metric_view")}
        expected = self.of_document(document["tables"])
        self.assertGreater(len(expected), 500)
        self.assertEqual(stored, expected)
        kernels = {row["kernel_name"]: row for row in database.execute("SELECT * FROM compute_kernel_view")}
        self.assertEqual(len(kernels), len(document["kernels"]))
        for kernel in document["kernels"]:
            stored = {(row["metric_id"], row["value_name"]): row["value"] for row in database.execute(
                "SELECT * FROM compute_kernel_metric_view WHERE kernel_name = ?", [kernel["name"]])}
            self.assertEqual(stored, self.of_document(kernel["tables"]))
        for name, count, total, mean, median in (row["cells"][:5] for row in document["tables"][0]["rows"]):
            row = kernels[name]
            self.assertEqual((row["dispatch_count"], row["duration_ns_sum"]), (count, total))
            self.assertAlmostEqual(row["duration_ns_mean"], mean, places=6)
            self.assertAlmostEqual(row["duration_ns_median"], median, places=6)
            took = [end - start for start, end in database.execute(
                "SELECT start_timestamp, end_timestamp FROM compute_dispatch WHERE kernel_uuid = ?", [row["kernel_uuid"]])]
            self.assertEqual((row["duration_ns_min"], row["duration_ns_max"], sum(took)), (min(took), max(took), total))

    def test_roofline_and_machine(self):
        document = self.json("-p", VCOPY)
        database = self.database("-p", VCOPY)
        point, = document["roofline"]["kernels"]
        for table in ("compute_kernel_roofline_data", "compute_workload_roofline_data"):
            row, = database.execute(f"SELECT * FROM {table}")
            for level in ("l1", "l2", "hbm", "lds"):
                self.assertEqual(row[f"{level}_cache_data"], point["intensity"][level], level)
            self.assertEqual((row["total_flops"], row["l0_cache_data"]), (point["performance"], None))
        workload, = database.execute("SELECT * FROM compute_workload")
        self.assertEqual((workload["name"], workload["sub_name"]), ("vcopy", "MI200"))
        info = json.loads(workload["sys_info_extdata"])
        self.assertEqual((info["gpu_arch"], info["wave_size"]), ("gfx90a", 64))
        roofs = json.loads(workload["roofline_bench_extdata"])
        first = next(csv.DictReader((VCOPY / "roofline.csv").read_text().splitlines()))
        for name in ("HBMBw", "L2Bw", "L1Bw", "LDSBw", "FP32Flops", "MFMAF64Flops"):
            self.assertEqual(roofs[name], float(first[name]))

    def test_configuration_of_the_profile_run(self):
        folder = self.workload("Dispatch_ID,Kernel_Name,GPU_ID,SQ_WAVES,Start_Timestamp,End_Timestamp\n0,k,0,4,100,200\n")
        config = folder / "profiling_config.yaml"
        config.write_text("filter_blocks: []\npc_sampling_interval: 1048576\nname: 'x'\nroof_only: false\nset_selected: null\nkernel: [a, '7']\n")
        row, = self.database("-p", folder).execute("SELECT profiling_config_extdata FROM compute_workload")
        self.assertEqual(json.loads(row[0]), {"filter_blocks": [], "pc_sampling_interval": 1048576, "name": "x", "roof_only": False,
                                              "set_selected": None, "kernel": ["a", "7"]})
        config.write_text("a: &a [x]\n" + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 20)}]\n" for n in range(12)))
        self.database("-p", folder, name="aliases")
        self.assertLess((self.folder / "aliases.db").stat().st_size, 10 << 20)

    def test_samples(self):
        rows = ["10,1,s_waitcnt,a.cpp:7,0,WAITCNT"] * 3 + ["11,1,v_add,a.cpp:7,1,NOT_AVAILABLE", "12,9,v_mul,b.cpp:1,0,ALU_DEPENDENCY"]
        folder = self.workload("Dispatch_ID,Kernel_Name,GPU_ID,SQ_WAVES,Start_Timestamp,End_Timestamp\n1,k,0,4,100,200\n", name="w2")
        (folder / "ps_file_kernel_trace.csv").write_text("Kind,Agent_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Start_Timestamp,End_Timestamp\n"
                                                         "KERNEL_DISPATCH,4,1,16,k,100,1100\n")
        (folder / "ps_file_pc_sampling_stochastic.csv").write_text("\n".join(
            ["Sample_Timestamp,Dispatch_Id,Instruction,Instruction_Comment,Wave_Issued_Instruction,Stall_Reason", *rows]) + "\n")
        found = {row["instruction"]: row for row in self.database("-p", folder).execute("SELECT * FROM compute_pc_sampling_view")}
        self.assertEqual({name: (row["kernel_name"], row["source"], row["count"], row["count_issue"], row["count_stall"]) for name, row in found.items()},
                         {"s_waitcnt": ("k", "a.cpp:7", 3, 0, 3), "v_add": ("k", "a.cpp:7", 1, 1, 0), "v_mul": (None, "b.cpp:1", 1, 0, 1)})
        self.assertEqual(list(json.loads(found["s_waitcnt"]["stall_reason"]).values()), [3])
        self.assertIsNone(found["v_add"]["stall_reason"])

    def test_several_runs_and_filters(self):
        database = self.database("-p", VCOPY, SYNTH, name="two")
        self.assertEqual([tuple(row) for row in database.execute("SELECT workload_id, name FROM compute_workload")], [(1, "vcopy"), (2, "synth_a")])
        self.assertEqual(database.execute("SELECT count(DISTINCT workload_id) FROM compute_workload_metric_view").fetchone()[0], 2)
        only = self.database("-p", SYNTH, "-k", "0", "-b", "2", name="only")
        self.assertEqual(only.execute("SELECT count(*) FROM compute_kernel").fetchone()[0], 1)
        self.assertEqual({row[0].split(".")[0] for row in only.execute("SELECT metric_id FROM compute_metric_definition")}, {"2"})

    def test_names_of_files(self):
        self.assertIn("--output-name", self.sentence("-p", VCOPY, "--output-format", "db"))
        self.assertIn("--output-name", self.sentence("-p", VCOPY, "--output-format", "db", "--output-name", "-"))
        self.database("-p", VCOPY)
        self.assertIn("a.db exists", self.sentence("-p", VCOPY, "--output-format", "db", "--output-name", self.folder / "a"))
        self.analyze("-p", VCOPY, "--output-format", "db", "--output-name", self.folder / "a", "--overwrite")
        os.chdir(self.folder)
        # Under upstream's name a file or folder gets a name of its own.
        for form, ending in (("db", ".db"), ("txt", ".txt"), ("csv", "")):
            self.assertEqual(self.personality("rocprof-compute", "analyze", "-p", VCOPY, "--output-format", form), "")
            made, = [p for p in self.folder.iterdir() if re.fullmatch(rf"rocprof_compute_[0-9a-f]{{16}}{ending}", p.name)]
            if form == "csv":
                for view in ("kernel", "kernel_metric", "workload_metric", "pc_sampling"):
                    header = (made / f"{view}.csv").read_text().splitlines()[0]
                    self.assertEqual(header.replace(",", " "), ANALYSIS_SCHEMA[f"compute_{view}_view"])
                self.assertEqual(len(self.table(made / "kernel.csv")), 1)
                self.assertIn("2.1_Speed-of-Light.csv", [p.name for p in made.iterdir()])


class Compatibility(Analyze):
    """The values that --compat 3.3 brings back, and where."""

    def test_time_unit_fault_in_text_and_saved_tables_only(self):
        options = ("-p", SYNTH, "-b", "10.1", "-t", "us", "--compat", "3.3")
        value = self.cells(self.json("-p", SYNTH), "10.1")["insts-valu"]["Avg"]
        self.assertEqual(self.cells(self.json(*options), "10.1")["insts-valu"], self.cells(self.json("-p", SYNTH), "10.1")["insts-valu"])
        text = self.personality("rocprof-compute", "analyze", *options)
        self.assertRegex(text, rf"VALU +│ +{value / 1000:.2f} .*│ us ")
        self.analyze(*options, "--save-dfs", self.folder / "dfs")
        row = self.table(self.folder / "dfs" / "10.1_Overall_Instruction_Mix.csv")[0]
        self.assertEqual((float(row["Avg"]), row["Unit"]), (round(value / 1000, 2), "us"))
        self.assertRegex(self.personality("rocprof-compute", "analyze", "-p", SYNTH, "-b", "10.1", "-t", "us"),
                         rf"VALU +│ +{value:.2f} .*Instr per kernel")

    def test_capitalised_units_in_text_only(self):
        options = ("-p", SYNTH, "-b", "2.1.0", "--compat", "3.3")
        self.assertIn("│ Gflop/s │", self.personality("rocprof-compute", "analyze", *options))
        self.assertIn("│ GFLOP/s │", self.personality("rocprof-compute", "analyze", "-p", SYNTH, "-b", "2.1.0"))
        self.assertEqual(self.cells(self.json(*options), "2.1")["sol-valu-flops"]["Unit"], "GFLOP/s")

    def test_tables_with_an_empty_column_are_hidden_in_text_only(self):
        options = ("-p", WORKLOADS / "vcopy" / "MI350", "-b", "18.10")
        self.assertIn("Not showing table with empty column(s)", self.personality("rocprof-compute", "analyze", *options, "--compat", "3.3"))
        self.assertIn("L2-Fabric Write Starve", self.personality("rocprof-compute", "analyze", *options))
        self.assertEqual(len(self.cells(self.json(*options, "--compat", "3.3"), "18.10")), len(self.cells(self.json(*options), "18.10")))

    def test_all_channels(self):
        """18.1 reads 16 of the 128 channels of gfx942 upstream."""
        workload = WORKLOADS / "synth_a" / "MI300X_A1"
        rows = self.table(workload / "pmc_perf.csv")

        def mean(channels):
            hits = [sum(float(row[f"TCC_HIT[{c}]"]) for c in range(channels)) for row in rows]
            misses = [sum(float(row[f"TCC_MISS[{c}]"]) for c in range(channels)) for row in rows]
            rates = [100 * hit / (hit + miss) for hit, miss in zip(hits, misses) if hit + miss]
            return sum(rates) / len(rates) if channels == 16 else 100 * sum(hits) / (sum(hits) + sum(misses))
        ours = self.cells(self.json("-p", workload, "-b", "18.1"), "18.1")["l2-channels-hit-rate"]["Avg"]
        theirs = self.cells(self.json("-p", workload, "-b", "18.1", "--compat", "3.3"), "18.1")["l2-channels-hit-rate"]["Avg"]
        self.assertAlmostEqual(ours, mean(128), places=9)
        self.assertAlmostEqual(theirs, mean(16), places=9)

    def test_hbm_intensity_without_gpu_series(self):
        folder = self.folder / "noseries"
        shutil.copytree(SYNTH, folder, copy_function=shutil.copyfile)
        info = (folder / "sysinfo.csv").read_text().splitlines()
        at = info[0].split(",").index("gpu_series")
        rows = list(csv.reader(info))
        (folder / "sysinfo.csv").write_text("\n".join(
            ",".join(f'"{c}"' for i, c in enumerate(row) if i != at) for row in rows) + "\n")
        ours = self.json("-p", folder)["roofline_ai"]["kernels"]["ai_hbm"][0]
        self.assertTrue(all(value > 1 for value in ours), ours)
        theirs = self.json("-p", folder, "--compat", "3.3")["roofline_ai"]["kernels"]["ai_hbm"][0]
        self.assertTrue(all(value in (0, None) for value in theirs), theirs)

    def test_intensities_of_every_golden_file(self):
        points = 0
        for path in sorted((DATA / "golden").glob("*.json")):
            golden = json.loads(path.read_text())
            # Upstream's points know no choice of kernels and dispatches.
            if not golden.get("roofline_ai") or {"-b", "-d", "-k"} & set(golden["args"]):
                continue
            workload, arch = path.stem.split("__")[:2]
            document = self.json("-p", WORKLOADS / workload / arch, "--compat", "3.3", *golden["args"])
            for kind, levels in golden["roofline_ai"].items():
                for level in ("ai_l1", "ai_l2", "ai_hbm"):
                    for want, have in zip(levels[level], document["roofline_ai"][kind][level]):
                        self.assertEqual(len(want), len(have), path.stem)
                        for a, b in zip(want, have):
                            points += 1
                            self.assertTrue(a is None and b is None or abs(a - b) <= 1e-9 * abs(a), (path.stem, kind, level, a, b))
            for kind, roofs in golden.get("roofline_ceilings_dev0", {}).items():
                if isinstance(roofs, dict):
                    for name, roof in roofs.items():
                        for want, have in zip(roof[0] + roof[1], sum(document["roofline_ceilings_dev0"][kind][name][:2], [])):
                            self.assertAlmostEqual(want, have, delta=1e-9 * abs(want))
        self.assertGreater(points, 1000)

    def test_intensities_with_lines_of_128_bytes(self):
        """golden_sum has the newer intensities: half of 3.3's at L1 and L2 on gfx942 and gfx950."""
        points = 0
        for path in sorted((DATA / "golden_sum").glob("*__sum.json")):
            golden = json.loads(path.read_text())
            workload, arch = path.stem.split("__")[:2]
            document = self.json("-p", WORKLOADS / workload / arch, *golden["args"])
            for kind, levels in golden["roofline_ai"].items():
                for level in ("ai_l1", "ai_l2", "ai_hbm"):
                    for want, have in zip(levels[level], document["roofline_ai"][kind][level]):
                        for a, b in zip(want, have):
                            # Upstream has no number for a kernel with an empty counter cell.
                            points += a is not None
                            self.assertTrue(a is None or abs(a - b) <= 1e-9 * abs(a), (path.stem, kind, level, a, b))
        self.assertGreater(points, 1000)
        definition = {arch: self.json("-p", WORKLOADS / "synth_a" / arch)["roofline"]["definition"] for arch in ("MI200", "MI300X_A1")}
        self.assertIn("64 bytes", definition["MI200"])
        self.assertIn("128 bytes", definition["MI300X_A1"])
        self.assertIn("64 bytes", self.json("-p", WORKLOADS / "synth_a" / "MI300X_A1", "--compat", "3.3")["roofline"]["definition"])

    def test_counters_under_their_old_names(self):
        """gfx908's fabric counters were recorded as TCC_EA_*; 3.3's formulas look for TCC_EA0_* and find nothing."""
        workload = WORKLOADS / "vcopy" / "MI100"
        ours = self.cells(self.json("-p", workload, "-b", "17.1"), "17.1")["l2-fabric-read-bandwidth"]
        with open(workload / "pmc_perf.csv", newline="") as file:
            read = time = 0
            for row in csv.DictReader(file):
                small, reads = float(row["TCC_EA_RDREQ_32B_sum"]), float(row["TCC_EA_RDREQ_sum"])
                read += 32 * small + 64 * (reads - small)
                time += int(row["End_Timestamp"]) - int(row["Start_Timestamp"])
        self.assertAlmostEqual(ours["Avg"], read / time, delta=1e-9 * ours["Avg"])
        theirs = self.cells(self.json("-p", workload, "-b", "17.1", "--compat", "3.3"), "17.1")
        self.assertIsNone(theirs["l2-fabric-read-bandwidth"]["Avg"])

    def test_formulas_of_ones_own_are_checked_where_they_stand(self):
        own = self.folder / "own"
        own.mkdir()
        (own / "mine.yaml").write_text("block: 2\ntables:\n  - table: 1\n    metrics:\n      - slug: sol-valu-flops\n        value: SQ_WAVES * FOO(3)\n")
        for command, *arguments in (("analyze", "-p", VCOPY, "-b", "12"), ("analyze", "--list-metrics", "gfx90a"), ("metrics", "ipc")):
            sentence = self.sentence(*arguments, "--config-dir", own, command=command)
            self.assertIn("mine.yaml:6:16: ", sentence)
            self.assertIn("'FOO'", sentence)

    def test_operations_that_were_not_counted_are_named(self):
        """3.3 does not collect the FP8 operations of MI300; the points stand without them, and it is said."""
        workload = WORKLOADS / "synth_a" / "MI300X_A1"
        document = self.json("-p", workload)
        self.assertEqual(document["roofline_uncounted"], ["SQ_INSTS_VALU_MFMA_MOPS_F8"])
        self.assertTrue(all(value > 0 for value in document["roofline_ai"]["kernels"]["ai_hbm"][1]))
        self.assertIn("FLOPs without SQ_INSTS_VALU_MFMA_MOPS_F8", self.text("-p", workload, "-b", "4"))
        self.assertEqual(self.json("-p", WORKLOADS / "synth_a" / "MI350")["roofline_uncounted"], [])

    def test_unknown_clocks(self):
        """A clock of 0 MHz makes peaks infinite upstream; here they are not computable."""
        workload = WORKLOADS / "vcopy" / "MI350"
        self.assertEqual(self.cells(self.json("-p", workload, "--compat", "3.3"), "2.1")["sol-valu-iops"]["Pct of Peak"], "inf")
        document = self.json("-p", workload)
        self.assertIsNone(self.cells(document, "2.1")["sol-valu-iops"]["Pct of Peak"])
        self.assertTrue(any("$max_sclk" in entry["missing"] for entry in document["not_computable"]))
        self.assertIn("max_sclk", self.text("-p", workload, "-b", "16.1"))
        self.assertIsNotNone(self.cells(self.json("-p", workload, "--specs-correction", "max_sclk:2400"), "2.1")["sol-valu-iops"]["Pct of Peak"])

    def test_a_dispatch_without_cycles(self):
        header = "Dispatch_ID,Kernel_Name,SQ_INSTS_SALU,GRBM_GUI_ACTIVE,Start_Timestamp,End_Timestamp\n"
        folder = self.workload(header + "0,k,10,100,0,10\n1,k,30,0,20,40\n")
        result = self.analyze("-p", folder, "-b", "10.1", "--output-format", "json")
        self.assertEqual(self.cells(json.loads(result.stdout), "10.1")["insts-salu"]["Avg"], 10)
        self.assertIn("1 of 2 dispatches has GRBM_GUI_ACTIVE = 0 (first: row 3)", result.stderr.decode())
        self.assertIn("row 3: GRBM_GUI_ACTIVE is 0", self.sentence("-p", folder, "--compat", "3.3"))


class Personality(Analyze):
    def test_options_of_later_versions(self):
        """Names that upstream gave its options after 3.3 mean what the older ones mean."""
        for old, new in ((("--sort", "dispatches"), ("--roofline-sort", "dispatches")), (("-m", "HBM"), ("--roofline-mem-level", "HBM")),
                         (("-R", "FP64"), ("--roofline-data-types", "FP64")), (("-b", "2", "3"), ("--speed-of-light", "--memory-chart")),
                         (("-b", "4"), ("--roofline",)), (("-b", "10.1", "4"), ("-b", "10.1", "--roofline"))):
            self.assertEqual(self.text("-p", VCOPY, *old), self.text("-p", VCOPY, *new), new)

    def test_tables_of_the_document(self):
        workload = f"{WORKLOADS}/synth_a/MI300X_A1/"
        text = self.personality("rocprof-compute", "analyze", "-p", workload, "-b", "2.1.2", "2.1.3", "2.1.4", "2.1.5", "--ids", "seed")
        lines = [line for line in text.splitlines() if line]
        self.assertEqual(lines[:2], ["2. System Speed-of-Light", "2.1 Speed-of-Light"])
        self.assertRegex(lines[2], "^╒═+╤═+╤═+╤═+╤═+╤═+╕$")
        titles = [cell.strip() for cell in lines[3].strip("│").split("│")]
        self.assertEqual(titles, ["Metric_ID", "Metric", "Avg", "Unit", "Peak", "Pct of Peak"])
        rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines if line.startswith("│")][1:]
        self.assertEqual([row[:2] for row in rows],
                         [["2.1.2", "MFMA FLOPs (BF16)"], ["2.1.3", "MFMA FLOPs (F16)"], ["2.1.4", "MFMA FLOPs (F32)"], ["2.1.5", "MFMA FLOPs (F64)"]])
        self.assertEqual(lines[-1][0] + lines[-1][-1], "╘╛")
        self.assertEqual(self.personality("omniperf", "analyze", "-p", workload, "-b", "2.1.2", "2.1.3", "2.1.4", "2.1.5", "--ids", "seed"), text)

    def test_default_ids_are_those_of_3_3_and_a_line_names_the_other_meaning(self):
        link = self.folder / "rocprof-compute"
        link.symlink_to(TACHO)
        result = self.run_command(link, "analyze", "-p", WORKLOADS / "synth_a" / "MI300X_A1", "-b", "2.1.2")
        self.assertIn("MFMA FLOPs (F8)", result.stdout.decode())
        notes = result.stderr.decode().splitlines()
        self.assertEqual(len(notes), 1)
        both = "2.1.2 is MFMA FLOPs (F8) where profile lists it and MFMA FLOPs (BF16) where analyze prints it"
        self.assertIn(both, notes[0])
        self.assertIn("--ids seed", notes[0])
        result = self.run_command(link, "analyze", "-p", WORKLOADS / "synth_a" / "MI300X_A1", "-b", "2.1.2", "--ids", "seed")
        self.assertIn("MFMA FLOPs (BF16)", result.stdout.decode())
        self.assertEqual(result.stderr.decode(), f"tacho: in the users' documents {both}; here it is the latter, "
                                                 "-b sol-mfma-flops-f8 shows the other\n")
        result = self.run_command(link, "analyze", "-p", SYNTH, "-b", "10.1")
        self.assertEqual(result.stderr, b"")
        result = self.run_command(link, "analyze", "-p", WORKLOADS / "synth_a" / "MI300X_A1", "-b", "2.1.3", "--ids", "seed")
        self.assertEqual(result.stderr, b"", "one meaning needs no words")

    def test_general_options_and_modes(self):
        self.personality("rocprof-compute", "-q", "analyze", "-p", SYNTH, "-b", "10.1")
        self.assertIn("2.1.0 -> VALU FLOPs", self.personality("rocprof-compute", "analyze", "--list-metrics", "gfx90a"))
        self.assertIn("usage", self.personality("rocprof-compute", "--help"))
        self.personality("rocprof-compute", "nonsense", code=1)


class BadInput(Analyze):
    HEADER = "Dispatch_ID,Kernel_Name,SQ_INSTS_SALU,GRBM_GUI_ACTIVE,Start_Timestamp,End_Timestamp\n"

    def test_paths(self):
        self.assertIn("no such folder", self.sentence("-p", self.folder / "nowhere"))
        self.assertIn("-p DIR", self.sentence())
        self.assertIn("profile folders", self.sentence("-p", WORKLOADS / "vcopy"))
        only = self.folder / "run"
        (only / "MI200").mkdir(parents=True)
        (only / "MI200" / "sysinfo.csv").write_text(SYSINFO)
        (only / "MI200" / "pmc_perf.csv").write_text(self.HEADER + "0,k,1,2,3,4\n")
        self.assertEqual(self.json("-p", only)["workloads"][0]["path"], str(only / "MI200"))

    def test_options(self):
        self.assertIn("--normal-unit", self.sentence("-p", VCOPY, "-n", "per_mile"))
        self.sentence("-p", VCOPY, "--nonsense")
        self.assertIn("--compat", self.sentence("-p", VCOPY, "--compat", "4.0"))

    def test_unknown_architecture(self):
        folder = self.workload(self.HEADER + "0,k,1,2,3,4\n", SYSINFO.replace("gfx90a", "gfx1234").replace("MI200", "X"))
        sentence = self.sentence("-p", folder)
        self.assertIn("gfx1234", sentence)
        self.assertIn("gfx942", sentence)
        self.json("-p", folder, "--specs-correction", "gpu_arch:gfx90a")

    def test_damaged_counters(self):
        for number, (counters, part) in enumerate((
                ("", "empty"), (self.HEADER, "not one dispatch"), ("a,b\n1,2\n", "Kernel_Name"),
                (self.HEADER + '0,"k,1,2,3,4\n', "row 2 is never closed"), (self.HEADER + "0,k,1\n", "none of its 1 rows"))):
            folder = self.workload(counters, name=f"w{number}")
            result = self.analyze("-p", folder, code=1)
            self.assertIn(part, result.stderr.decode().splitlines()[-1])
            self.assertEqual(result.stdout, b"")

    def test_cells_that_are_no_numbers_never_count_as_zero(self):
        folder = self.workload(self.HEADER + "0,k,10,100,0,10\n1,k,oops,100,20,40\n")
        result = self.analyze("-p", folder, "-b", "10.1", "--output-format", "json")
        self.assertEqual(self.cells(json.loads(result.stdout), "10.1")["insts-salu"]["Avg"], 10)
        self.assertIn("row 3: value is not a number (SQ_INSTS_SALU: 'oops'); treated as missing", result.stderr.decode())

    def test_kernel_names_cannot_command_the_terminal(self):
        folder = self.workload(self.HEADER + '0,"evil\x1b]0;title\x07\x1b[31m\nname",1,100,0,10\n')
        for output in (self.text("-p", folder), self.personality("rocprof-compute", "analyze", "-p", folder)):
            self.assertNotIn("\x1b", output)
            self.assertNotIn("\x07", output)
            self.assertIn("evil?]0;title", output)
        self.assertEqual(self.json("-p", folder)["tables"][0]["rows"][0]["cells"][0], "evil\x1b]0;title\x07\x1b[31m\nname")

    def test_missing_counters_are_named(self):
        document = self.json("-p", WORKLOADS / "ipblocks_TCC" / "MI300X_A1")
        missing = {entry["slug"]: entry["missing"] for entry in document["not_computable"]}
        self.assertIn("SQ_ACTIVE_INST_VALU", missing["valu-utilization"])
        self.assertIn("Not computable:", self.text("-p", WORKLOADS / "ipblocks_TCC" / "MI300X_A1", "--full"))

    def test_a_table_whose_denominators_are_0_says_so(self):
        folder = self.folder / "idle"
        shutil.copytree(VCOPY, folder, copy_function=shutil.copyfile)
        with (folder / "pmc_perf.csv").open(newline="") as file:
            header, *rows = csv.reader(file)
        at = header.index("TCP_TOTAL_CACHE_ACCESSES_sum")
        with (folder / "pmc_perf.csv").open("w", newline="") as file:
            csv.writer(file).writerows([header] + [row[:at] + ["0"] + row[at + 1:] for row in rows])
        self.assertIn("Not computable: 16.1 vL1D Speed-of-Light; nothing to divide (0 / 0): Hit rate",
                      " ".join(self.text("-p", folder, "-b", "16.1.0").split()))

    def test_counters_that_a_spreadsheet_saved(self):
        folder = self.folder / "cut"
        shutil.copytree(VCOPY, folder, copy_function=shutil.copyfile)
        path = folder / "pmc_perf.csv"
        with path.open(newline="") as file:
            header, *rows = csv.reader(file)
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([header] + [[f"{float(cell):.2E}" if name.endswith("_Timestamp") else cell
                                                    for name, cell in zip(header, row)] for row in rows])
        result = self.run_command(TACHO, "analyze", folder, "--output-format", "json")
        self.assertIn("timestamps were cut to a few digits (1.41E+15)", json.loads(result.stdout)["workloads"][0]["warnings"][0])
        self.assertIn("treated as missing", result.stderr.decode())
        rocpd = self.folder / "rocpd"
        shutil.copytree(WORKLOADS / "vcopy" / "MI300X_A1_rocpd", rocpd, copy_function=shutil.copyfile)
        with (rocpd / "pmc_perf.csv").open(newline="") as file:
            header, *rows = csv.reader(file)
        with (rocpd / "pmc_perf.csv").open("w", newline="") as file:
            csv.writer(file).writerows([header] + [[f"{float(cell):.2E}" if name.endswith("_Timestamp") else cell
                                                    for name, cell in zip(header, row)] for row in rows])
        self.assertIn("timestamps were cut to a few digits", self.run_command(TACHO, "analyze", rocpd).stderr.decode())
        path.write_bytes(path.read_text().encode("utf-16"))
        self.assertIn("is UTF-16 text, as spreadsheets save it: save it as UTF-8",
                      self.run_command(TACHO, "analyze", folder, code=1).stderr.decode())

    def without(self, *gaps):
        """synth_a with empty cells: (counter, a test of the row's number)."""
        folder = self.folder / f"gaps{len(gaps)}{gaps[0][0]}"
        shutil.copytree(SYNTH, folder, copy_function=shutil.copyfile)
        with (folder / "pmc_perf.csv").open(newline="") as file:
            header, *rows = csv.reader(file)
        for counter, chosen in gaps:
            for i, row in enumerate(rows):
                row[header.index(counter)] = "" if chosen(i) else row[header.index(counter)] or "1"
        with (folder / "pmc_perf.csv").open("w", newline="") as file:
            csv.writer(file).writerows([header] + rows)
        return folder, [row[header.index("Kernel_Name")] for row in rows]

    def test_dispatches_without_a_counter_are_named(self):
        folder, kernels = self.without(("SQ_INSTS_SMEM", lambda i: i < 7))
        said = " ".join(self.text("-p", folder, "-b", "10.1").split())
        self.assertIn("left out of SMEM: 7 of 40 dispatches, which lack SQ_INSTS_SMEM (", said)
        [left] = next(table for table in self.json("-p", folder, "-b", "10.1")["tables"] if table["id"] == "10.1")["left_out"]
        self.assertEqual((left["ids"], left["metrics"], left["counters"], left["dispatches"], left["of"]),
                         (["10.1.5"], ["SMEM"], ["SQ_INSTS_SMEM"], 7, 40))
        self.assertEqual({each["kernel"]: (each["dispatches"], each["of"]) for each in left["kernels"]},
                         {name: (kernels[:7].count(name), kernels.count(name)) for name in kernels[:7]})
        # Of the dispatches chosen; and one screen counts them, with three that lack SQ_INSTS_VALU_ADD_F32 anyway.
        self.assertIn("left out of SMEM: 2 of 4 dispatches, which lack", " ".join(self.text("-p", folder, "-b", "10.1", "-d", "5:8").split()))
        self.assertNotIn("left out of", self.text("-p", folder, "-b", "10.1", "-d", "20:30"))
        self.assertIn("Counters: 10 of 40 dispatches lack some and are left out of", " ".join(self.text("-p", folder).split()))
        one = next(kernel for kernel in self.json("-p", folder, "-b", "10.1", "--per-kernel")["kernels"] if kernel["name"] == kernels[0])
        [left] = next(table for table in one["tables"] if table["id"] == "10.1")["left_out"]
        self.assertEqual((left["dispatches"], left["of"]), (kernels[:7].count(kernels[0]), kernels.count(kernels[0])))

    def test_counters_that_no_dispatch_has(self):
        folder, _ = self.without(("SQ_INSTS_SMEM", lambda i: True), ("TCP_TOTAL_CACHE_ACCESSES_sum", lambda i: i % 2 == 0),
                                 ("TCP_TCC_READ_REQ_sum", lambda i: i % 2 == 1))
        self.assertIn("not computable: SMEM (missing SQ_INSTS_SMEM)", " ".join(self.text("-p", folder, "-b", "10.1").split()))
        entry = next(each for each in self.json("-p", folder)["not_computable"] if each["id"] == "16.1.0")
        self.assertEqual((entry["reason"], entry["missing"]), ("never together", []))
        self.assertLessEqual({"TCP_TOTAL_CACHE_ACCESSES_sum", "TCP_TCC_READ_REQ_sum"}, set(entry["apart"]))
        self.assertIn("Not computable: 16.1 vL1D Speed-of-Light; no dispatch has all of TCP_T",
                      " ".join(self.text("-p", folder, "-b", "16.1.0").split()))


if __name__ == "__main__":
    unittest.main()
