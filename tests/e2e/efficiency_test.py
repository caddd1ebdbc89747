#!/usr/bin/env python3
"""Operators against their roof: FLOPs and bytes of recorded traces against formulas of this test's own, planted faults that get their
cause, healthy operators that get no finding, and files whose shapes are missing or wrong."""
import csv
import gzip
import io
import json

from harness import Case, DATA, TACHO, main, need_data
from torch_file import TorchFile

TRACES = DATA / "traces"
BYTES = {"c10::BFloat16": 2, "c10::Half": 2, "float": 4, "double": 8}


def made(name, dims, types, concrete, kernel, duration_us, calls=40, device="NVIDIA H100 80GB HBM3", units=132, memory=85018279936,
         grid=(528, 1, 1), phase="cpu_op", strides=None):
    """A trace as torch.profiler writes it: `calls` calls of an operator, each with one kernel."""
    events = []
    at = 1000.0
    for i in range(calls):
        arguments = {"External id": i + 1, "Input Dims": dims, "Input type": types, "Concrete Inputs": concrete}
        if strides is not None:
            arguments["Input Strides"] = strides
        events.append({"ph": "X", "cat": phase, "name": name, "pid": 1, "tid": 1, "ts": at, "dur": 20.0, "args": arguments})
        events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at + 5, "dur": 5.0,
                       "args": {"correlation": i + 1, "External id": i + 1}})
        events.append({"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": at + 12, "dur": float(duration_us),
                       "args": {"device": 0, "stream": 7, "correlation": i + 1, "External id": i + 1, "grid": list(grid), "block": [256, 1, 1]}})
        at += duration_us + 30
    return {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": device, "numSms": units, "totalGlobalMem": memory}],
            "traceEvents": events}


class Efficiency(Case):
    def operators(self, file, *options):
        text = self.run_command(TACHO, "stats", file, "--by", "operator", "--input-shapes", "--output-format", "csv", *options).stdout.decode()
        return list(csv.DictReader(io.StringIO(text)))

    def write(self, document, name="t.json"):
        path = self.folder / name
        path.write_text(json.dumps(document))
        return path

    def finding(self, file):
        text = self.run_command(TACHO, "report", "findings", file, "--output-format", "json").stdout.decode()
        return next((f for f in json.loads(text)["findings"] if f["rule"] == "operators-below-roof"), None)


class Recorded(Efficiency):
    def own_sums(self, path):
        """{name: (FLOPs, bytes)} of matrix products, by this test's own formulas."""
        sums = {}
        for event in json.load(gzip.open(path))["traceEvents"]:
            name, given = event.get("name"), event.get("args", {})
            if event.get("cat") != "cpu_op" or name not in ("aten::mm", "aten::addmm", "aten::bmm") or "Input Dims" not in given:
                continue
            dims = given["Input Dims"]
            a, b = dims[1:3] if name == "aten::addmm" else dims[:2]
            m, k, n, batch = a[-2], a[-1], b[-1], a[0] if name == "aten::bmm" else 1
            width = BYTES[given["Input type"][0]]
            flops, moved = 2 * batch * m * n * k, width * batch * (m * k + k * n + m * n)
            if name == "aten::addmm":
                flops += m * n
                moved += width * dims[0][-1]
            old = sums.get(name, (0, 0))
            sums[name] = (old[0] + flops, old[1] + moved)
        return sums

    def test_products_of_recorded_traces(self):
        need_data()
        for name in ("kineto_h100_qwen1.5-0.5b", "kineto_mi300x_qwen1.5-0.5b"):
            path = TRACES / f"{name}.json.gz"
            sums = {}
            for row in self.operators(path):
                if row["Flops"] and row["Name"] in ("aten::mm", "aten::addmm", "aten::bmm"):
                    old = sums.get(row["Name"], (0, 0))
                    sums[row["Name"]] = (old[0] + float(row["Flops"]), old[1] + float(row["Bytes"]))
            self.assertEqual(sums, self.own_sums(path), name)

    def test_no_healthy_product_is_accused(self):
        need_data()
        for name, least, most in (("kineto_h100_qwen1.5-0.5b", 55, 72), ("kineto_mi300x_qwen1.5-0.5b", 60, 80)):
            path = TRACES / f"{name}.json.gz"
            large = [row for row in self.operators(path) if row["Name"] in ("aten::mm", "aten::addmm") and int(row["SelfDeviceNs"]) > 500_000]
            self.assertGreater(len(large), 3)
            for row in large:
                self.assertEqual(row["Bound"], "compute")
                self.assertTrue(least < float(row["PercentOfRoof"]) < most, row)
            lines = [line for line in self.finding(path)["evidence"] if "aten::" in line]
            self.assertTrue(lines)
            self.assertFalse([line for line in lines if line.startswith(("aten::mm", "aten::addmm"))], lines)

    def test_time_of_nested_operators_counts_once(self):
        need_data()
        path = TRACES / "kineto_mi300x_resnet_checkpoint.json.gz"
        rows = self.operators(path, "--top", "0")
        self.assertFalse([row for row in rows if row["Name"] == "aten::conv2d" and row["Flops"]], "its kernels belong to the convolution in it")
        self.assertTrue([row for row in rows if row["Name"] == "aten::miopen_convolution" and float(row["Flops"] or 0) > 0])

    def test_modules_sum_up_their_operators(self):
        need_data()
        path = TRACES / "kineto_h100_qwen1.5-0.5b.json.gz"
        options = ("--by", "module", "--input-shapes", "--output-format", "csv", "--top", "0")
        text = self.run_command(TACHO, "stats", path, *options).stdout.decode()
        modules = {row["Name"]: row for row in csv.DictReader(io.StringIO(text))}
        # All products with weights of this model lie in its Linear modules, and in the 24 layers all of them but the last.
        products = [row for row in self.operators(path, "--top", "0") if row["Name"] in ("aten::mm", "aten::addmm") and not row["NotJudged"]]
        linear, layer = modules["Linear"], modules["Qwen2DecoderLayer"]
        self.assertAlmostEqual(float(linear["Flops"]), sum(float(row["Flops"]) for row in products), delta=1)
        self.assertEqual(float(linear["PercentJudged"]), 100)
        judged = sum(int(row["TotalDeviceNs"]) for row in products)
        self.assertEqual(int(linear["TotalDeviceNs"]), judged)
        roof = sum(int(row["TotalDeviceNs"]) * float(row["PercentOfRoof"]) / 100 for row in products)
        self.assertAlmostEqual(float(linear["PercentOfRoof"]), 100 * roof / judged, delta=0.01)
        self.assertGreater(float(layer["Flops"]), 0.9 * float(linear["Flops"]))
        self.assertLess(float(layer["PercentJudged"]), 100)

    def test_measured_roofs_come_first(self):
        need_data()
        path = TRACES / "kineto_h100_qwen1.5-0.5b.json.gz"
        roofs = self.folder / "roofline.csv"
        # Half of the data sheet's bandwidth (3.35 TB/s) and of its bf16 rate (989.4 TFLOP/s); no other roof was measured.
        roofs.write_text("device,HBMBw,MFMABF16Flops,DeviceName,Measured\n0,1675,494700,NVIDIA H100 80GB HBM3,2026-11-20T21:00:00Z\n")
        plain = {(row["Name"], row["InputShapes"]): row for row in self.operators(path, "--top", "0")}
        compared = 0
        for row in self.operators(path, "--top", "0", "--roofs", roofs):
            before = plain[row["Name"], row["InputShapes"]]["PercentOfRoof"]
            if row["Bound"] == "memory" or row["Name"] == "aten::mm":
                self.assertAlmostEqual(float(row["PercentOfRoof"]), 2 * float(before), delta=0.02 * float(before))
                compared += 1
        self.assertGreater(compared, 20)
        said = self.run_command(TACHO, "stats", path, "--by", "operator", "--input-shapes", "--roofs", roofs).stdout.decode()
        self.assertIn("Roofs of NVIDIA H100 80GB HBM3: measured on 2026-11-20T21:00:00Z.", " ".join(said.split()))

    def test_roofs_that_cannot_be_used(self):
        path = self.write(made("aten::mm", [[4096, 4096], [4096, 4096]], ["float", "float"], ["", ""], "k", 3000))
        roofs = self.folder / "roofline.csv"
        for text, why in ((None, "no such file"), ("", "no row of measured roofs"), ("device,HBMBw\n0,\n", "no roof was measured"),
                          ("device,HBMBw,DeviceName\n0,5000,AMD Instinct MI300X\n", "has the roofs of AMD Instinct MI300X, and the trace's GPU is NVIDIA H100")):
            if text is not None:
                roofs.write_text(text)
            result = self.run_command(TACHO, "stats", path, "--by", "operator", "--input-shapes", "--roofs", roofs, code=1)
            self.assertIn(why, " ".join(result.stderr.decode().split()))
        # The user says which device it is held against: then the file's name of it does not matter.
        roofs.write_text("device,HBMBw,FP32Flops,DeviceName\n0,5000,100000,AMD Instinct MI300X\n")
        self.assertTrue(self.operators(path, "--roofs", roofs, "--device", "MI300X"))
        for option in (("--roofs", roofs), ("--device", "H100"), ("--config-dir", self.folder)):
            result = self.run_command(TACHO, "stats", path, "--by", "operator", *option, code=1)
            self.assertIn("goes with --by operator or module and --input-shapes", " ".join(result.stderr.decode().split()))

    def test_operators_compare_by_shapes(self):
        def two(small_us):
            document = made("aten::mm", [[4096, 4096], [4096, 4096]], ["float", "float"], ["", ""], "k", 3000, calls=10)
            other = made("aten::mm", [[64, 64], [64, 64]], ["float", "float"], ["", ""], "k", small_us, calls=10)
            for event in other["traceEvents"]:
                event["ts"] += 1e6
                event["args"]["External id"] += 100
                if "correlation" in event["args"]:
                    event["args"]["correlation"] += 100
            document["traceEvents"] += other["traceEvents"]
            return document

        a, b = self.write(two(50), "a.json"), self.write(two(80), "b.json")
        table = json.loads(self.run_command(TACHO, "diff", a, b, "--by", "operator", "--input-shapes", "--output-format", "json").stdout)
        titles = [column["title"] if isinstance(column, dict) else column for column in table["columns"]]
        rows = {row[titles.index("name")]: dict(zip(titles, row)) for row in table["rows"]}
        self.assertEqual(set(rows), {"aten::mm [[4096, 4096], [4096, 4096]]", "aten::mm [[64, 64], [64, 64]]"})
        self.assertEqual(rows["aten::mm [[64, 64], [64, 64]]"]["difference_ns"], 300_000)
        self.assertEqual(rows["aten::mm [[4096, 4096], [4096, 4096]]"]["difference_ns"], 0)
        plain = self.write({"traceEvents": [{**event, "args": {k: v for k, v in event["args"].items() if not k.startswith("Input")}}
                                            for event in two(50)["traceEvents"]]}, "plain.json")
        result = self.run_command(TACHO, "diff", a, plain, "--by", "operator", "--input-shapes", code=1)
        self.assertIn("plain.json: no shapes of inputs", " ".join(result.stderr.decode().split()))
        result = self.run_command(TACHO, "diff", a, b, "--input-shapes", code=1)
        self.assertIn("--input-shapes goes with --by operator", result.stderr.decode())

    def test_operators_of_one_run_only_meet_in_what_is_around_them(self):
        def nested(outer, children, us):
            events = []
            for step in range(8):
                first = 100 * step
                start = 10_000 * step
                host = {"pid": 1, "tid": 1, "ph": "X"}
                events.append({**host, "cat": "cpu_op", "name": outer, "ts": start, "dur": 900, "args": {"External id": first}})
                for i, child in enumerate(children, 1):
                    at = start + 200 * i
                    link = {"External id": first + i, "correlation": first + i}
                    events += [{**host, "cat": "cpu_op", "name": child, "ts": at, "dur": 100, "args": {"External id": first + i}},
                               {**host, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + 10, "dur": 5, "args": link},
                               {"ph": "X", "pid": 0, "tid": 7, "cat": "kernel", "name": "k", "ts": at + 50, "dur": us,
                                "args": {**link, "device": 0, "stream": 7}}]
            return {"traceEvents": events}

        def compared(a, b):
            a, b = self.write(a, "a.json"), self.write(b, "b.json")
            table = json.loads(self.run_command(TACHO, "diff", a, b, "--by", "operator", "--output-format", "json").stdout)
            titles = [column["title"] if isinstance(column, dict) else column for column in table["columns"]]
            keys = [titles.index(key) for key in ("name", "calls_a", "calls_b", "total_a_ns", "total_b_ns")]
            return [tuple(row[key] for key in keys) for row in table["rows"]], " ".join(
                self.run_command(TACHO, "diff", a, b, "--by", "operator").stderr.decode().split())

        rows, said = compared(nested("aten::linear", ["aten::addmm"], 50), nested("aten::linear", ["aten::mm", "aten::add_"], 40))
        self.assertEqual(rows, [("aten::linear", 8, 8, 400_000, 640_000)])
        self.assertIn("aten::linear stands for aten::addmm in A, for aten::add_ and aten::mm in B", said)
        rows, said = compared(nested("ProfilerStep", ["aten::addmm"], 50), nested("ProfilerStep", ["aten::mm"], 40))
        self.assertEqual(rows, [("matrix product", 8, 8, 400_000, 320_000)])
        self.assertIn("matrix product stands for aten::addmm in A, for aten::mm in B", said)
        rows, said = compared(nested("ProfilerStep", ["aten::gelu"], 50), nested("ProfilerStep", ["aten::silu"], 40))
        self.assertEqual({row[0] for row in rows}, {"aten::gelu", "aten::silu"})
        self.assertEqual(said, "")

    def test_models_of_the_users_own(self):
        path = self.write(made("my::fused_mlp", [[4096, 4096], [4096, 4096]], ["c10::BFloat16", "c10::BFloat16"], ["", ""], "k", 300))
        self.assertEqual(self.operators(path)[0].get("Flops", ""), "")
        folder = self.folder / "own"
        folder.mkdir()
        (folder / "operators.yaml").write_text("""models:
  - operators: [my::fused_mlp]
    engine: matrix
    type: 0
    flops: 2 * d0[0] * d0[1] * d1[1]
    bytes: t0 + t1 + e0 * d0[0] * d1[1]
    source: the definition of a matrix product
""")
        row = self.operators(path, "--config-dir", folder)[0]
        self.assertEqual(float(row["Flops"]), 40 * 2 * 4096**3)
        (folder / "operators.yaml").write_text("models: [3]\n")
        wrong = self.run_command(TACHO, "stats", path, "--by", "operator", "--input-shapes", "--config-dir", folder, code=1)
        self.assertIn("operators.yaml", wrong.stderr.decode())

    def test_utilisation_of_a_step(self):
        document = made("aten::mm", [[8192, 8192], [8192, 8192]], ["c10::BFloat16", "c10::BFloat16"], ["", ""], "nvjet", 1600, calls=10)
        # Ten steps of one product each, 2 ms long: 2 x 8192^3 FLOP in 2 ms are 549.8 TFLOP/s, 55.6 % of 989.4.
        for i in range(10):
            for event in document["traceEvents"][3 * i:3 * i + 3]:
                event["ts"] = 1000.0 + i * 2000 + {"cpu_op": 1, "cuda_runtime": 5, "kernel": 12}[event["cat"]]
        for i in range(10):
            document["traceEvents"].append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", "pid": 1, "tid": 1,
                                            "ts": 1000.0 + i * 2000, "dur": 2000.0})
        said = self.run_command(TACHO, "stats", self.write(document), "--by", "operator", "--input-shapes").stdout.decode()
        self.assertIn("Matrix work of a step: 1.10 TFLOP (10 steps of 2.00 ms), 55.6 % of what the data sheet's bf16 rate would do", " ".join(said.split()))


class Copies(Efficiency):
    def test_against_their_link(self):
        file = TorchFile()
        for _ in range(10):
            file.copy("HtoD", 64 << 20, 1500)
            file.copy("DtoH", 64 << 20, 4000)
            file.copy("HtoD", 4096, 500)  # too small to count
        path = file.write(self.folder / "t.json")
        said = " ".join(self.run_command(TACHO, "stats", path, "--by", "copy").stdout.decode().split())
        self.assertIn("Copies of 1 MiB and more from host to device ran at 44.74 GB/s, 71.0 % of PCIe 5.0 x16 (63.00 GB/s in one direction), "
                      "the link of H100 SXM.", said)
        self.assertIn("from device to host ran at 16.78 GB/s, 26.6 %", said)
        # A device that nobody knows has no link, and a rate beyond the link's was of another one.
        for document in (file.document(), TorchFile().document()):
            document["deviceProperties"][0]["name"] = "Warp 9"
            document["deviceProperties"][0]["numSms"] = 7
            path.write_text(json.dumps(document))
            self.assertNotIn("PCIe", self.run_command(TACHO, "stats", path, "--by", "copy").stdout.decode())
        fast = TorchFile()
        fast.copy("HtoD", 64 << 20, 500)
        self.assertNotIn("PCIe", self.run_command(TACHO, "stats", fast.write(path), "--by", "copy").stdout.decode())

    def test_an_operator_that_only_copies(self):
        file = TorchFile()
        for _ in range(10):
            with file.op("aten::copy_", [[1 << 24], [1 << 24], []], ["float", "float", "Scalar"], ["", "", "False"]):
                file.copy("HtoD", 64 << 20, 1500)
        self.assertEqual(self.operators(file.write(self.folder / "t.json"))[0]["NotJudged"], "copies only")

    def test_copies_to_the_host_are_not_the_kernels_time(self):
        # Half of the calls copy on the device, at 80 % of its memory's rate, half to the host: one name, and equal shapes.
        def copies(plant):
            file = TorchFile()
            for _ in range(20):
                with file.op("aten::copy_", [[1 << 24], [1 << 24], []], ["float", "float", "Scalar"], ["", "", "False"]):
                    file.kernel("void at::native::vectorized_elementwise_kernel<4, direct_copy_kernel_cuda>", 2 * 4 * (1 << 24) / 3.35e12 / 0.8 * 1e6, 8192)
                if plant:
                    with file.op("aten::copy_", [[1 << 24], [1 << 24], []], ["float", "float", "Scalar"], ["", "", "False"]):
                        file.copy("DtoH", 64 << 20, 2600)
            return file.write(self.folder / "c.json")
        row = self.operators(copies(False))[0]
        self.assertEqual((row["NotJudged"], round(float(row["PercentOfRoof"]))), ("", 80))
        self.assertEqual(self.operators(copies(True))[0]["NotJudged"], "copies and kernels")
        self.assertIsNone(self.finding(self.folder / "c.json"))


class Planted(Efficiency):
    HALF = ["c10::BFloat16", "c10::BFloat16"]

    def cause(self, document):
        found = self.finding(self.write(document))
        self.assertIsNotNone(found)
        self.assertEqual(found["state"], "found")
        low, high = found["saves"]
        self.assertTrue(0 < low <= high)
        return "\n".join(found["evidence"])

    def test_few_workgroups(self):
        cause = self.cause(made("aten::mm", [[256, 131072], [131072, 512]], self.HALF, ["", ""], "Cijk_Ailk_BBS_MT256x128x64_GSU2", 700, grid=(8, 1, 1),
                                device="AMD Instinct MI300X", units=304, memory=206_000_000_000))
        self.assertIn("8 workgroups for 304 compute units", cause)

    def test_tiles_that_do_not_fit(self):
        cause = self.cause(made("aten::bmm", [[4096, 8, 512], [4096, 512, 8]], self.HALF, ["", ""], "Cijk_Ailk_BBS_MT16x448x64", 900, grid=(4096, 1, 1)))
        self.assertIn("tiles of 16 x 448 only 0.9 % is part of a result of 8 x 8", cause)

    def test_rows_off_16_bytes(self):
        cause = self.cause(made("aten::mm", [[4096, 4099], [4099, 4099]], self.HALF, ["", ""], "cutlass_80_simt_gemm_128x128", 3000))
        self.assertIn("rows of 4099 elements of 2 bytes do not begin on 16 bytes", cause)

    def test_a_strided_copy(self):
        cause = self.cause(made("aten::copy_", [[4096, 4096], [4096, 4096], []], ["float", "float", "Scalar"], ["", "", "False"],
                                "elementwise_kernel", 200, strides=[[4096, 1], [1, 4096], []]))
        self.assertIn("an input is not contiguous in memory", cause)

    def test_layout_moves(self):
        document = made("aten::cudnn_convolution", [[32, 64, 56, 56], [64, 64, 3, 3], [], [], [], [], [], [], []],
                        ["c10::Half", "c10::Half"] + [""] * 7, ["", "", "[1, 1]", "[1, 1]", "[1, 1]", "1", "False", "False", "True"],
                        "void cudnn::nchwToNhwcKernel<half>", 900)
        self.assertIn("100 % of its time moves data to another layout", self.cause(document))

    def test_padded_heads(self):
        shape = [16, 559, 16, 72]
        document = made("aten::_flash_attention_forward", [shape] * 3 + [[]] * 12, ["c10::BFloat16"] * 3 + ["Scalar"] * 12,
                        [""] * 7 + ["0.", "False"] + [""] * 6, "void flash_fwd_kernel<>", 3000)
        self.assertIn("its heads have 72 elements, and its kernels compute with 96", self.cause(document))

    def test_healthy_operators_are_silent(self):
        # 2 x 8192^3 FLOP in 1.6 ms are 687 TFLOP/s: 69 % of an H100's dense rate.
        healthy = made("aten::mm", [[8192, 8192], [8192, 8192]], self.HALF, ["", ""], "nvjet_tst_256x128_64x4", 1600, calls=10)
        path = self.write(healthy)
        self.assertIsNone(self.finding(path))
        row = self.operators(path)[0]
        self.assertAlmostEqual(float(row["PercentOfRoof"]), 100 * 2 * 8192**3 / 989.4e12 / 1600e-6, places=3)
        self.assertEqual((row["Bound"], row["NotJudged"], row["Precision"]), ("compute", "", "bf16"))

    def test_near_the_peak_refutes_small_grids(self):
        # 60 workgroups for 132 units, and yet 84 % of the memory's bandwidth.
        document = made("aten::copy_", [[64, 1024, 1024], [64, 1024, 1024], []], ["float", "float", "Scalar"], ["", "", "False"], "copy_kernel", 190,
                        grid=(60, 1, 1))
        rules = json.loads(self.run_command(TACHO, "report", "findings", self.write(document), "--output-format", "json").stdout)["findings"]
        self.assertNotIn("small-grids", [f["rule"] for f in rules])
        for event in document["traceEvents"]:
            event.get("args", {}).pop("Input Dims", None)
        rules = json.loads(self.run_command(TACHO, "report", "findings", self.write(document, "u.json"), "--output-format", "json").stdout)["findings"]
        self.assertIn("small-grids", [f["rule"] for f in rules])

    def test_what_is_not_judged(self):
        short = self.operators(self.write(made("aten::mm", [[64, 64], [64, 64]], self.HALF, ["", ""], "k", 4)))[0]
        self.assertEqual((short["NotJudged"], short["LostNs"]), ("too short", ""))
        fast = self.operators(self.write(made("aten::mm", [[8192, 8192], [8192, 8192]], self.HALF, ["", ""], "k", 500), "f.json"))[0]
        self.assertEqual(fast["NotJudged"], "above the roof")
        unknown = self.operators(self.write(made("my::operator", [[64, 64]], ["float"], [""], "k", 50), "n.json"))
        self.assertNotIn("Flops", unknown[0])

    APPLY = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::%s>"
    ADAM = APPLY % ("FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4, "
                    "(at::native::(anonymous namespace)::ADAM_MODE)1, false>, float const*, double")

    def test_fused_and_foreach_optimizers(self):
        # AdamW reads parameters, gradients and two moments, and writes all but the gradients: 28 bytes an element.
        sizes = [[4096, 4096]] * 12 + [[4096]]
        elements = 12 * 4096**2 + 4096
        roof = 28 * elements / 3.35e12 * 1e6
        lists = ["TensorList"] * 6 + ["Scalar"] * 6
        step = made("aten::_fused_adamw_", [sizes] * 4 + [[], [[]] * 13] + [[]] * 6, lists, [""] * 12, self.ADAM, roof / 0.8)
        row = self.operators(self.write(step))[0]
        self.assertEqual((row["Name"], row["Precision"], row["Bound"], row["NotJudged"]), ("aten::_fused_adamw_", "f32", "memory", ""))
        self.assertEqual(float(row["Bytes"]), 40 * 28 * elements)
        self.assertAlmostEqual(float(row["PercentOfRoof"]), 80, delta=0.01)
        add = self.APPLY % "TensorListMetadata<2>, at::native::(anonymous namespace)::BinaryOpListAlphaFunctor<c10::BFloat16, 2, 2, 0>, std::plus<float>, float"
        row = self.operators(self.write(made("aten::_foreach_add_", [sizes, sizes, []], ["TensorList", "TensorList", "Scalar"], ["", "", "1"], add, 3 * 2 * elements /
                                             3.35e12 * 1e6 / 0.3), "a.json"))[0]
        self.assertEqual((float(row["Bytes"]), row["Precision"]), (40 * 3 * 2 * elements, "bf16"))
        self.assertAlmostEqual(float(row["PercentOfRoof"]), 30, delta=0.01)
        self.assertIn("aten::_foreach_add_", self.finding(self.folder / "a.json")["sentence"] + " ".join(self.finding(self.folder / "a.json")["evidence"]))

    def test_lists_without_sizes_or_types(self):
        # PyTorch writes "[]" for more than 30 tensors.
        lists = ["TensorList"] * 6 + ["Scalar"] * 6
        path = self.write(made("aten::_fused_adamw_", [[]] * 12, lists, [""] * 12, self.ADAM, 500))
        row = self.operators(path)[0]
        self.assertEqual((row["NotJudged"], row["Flops"], row["PercentOfRoof"]), ("lists without sizes", "", ""))
        said = " ".join(self.run_command(TACHO, "stats", path, "--by", "operator", "--input-shapes").stdout.decode().split())
        self.assertIn("40 calls of operators on lists of tensors (20.00 ms of GPU time) are not judged: PyTorch writes sizes of lists of up to 30 tensors.", said)
        self.assertNotIn("Roofs of", said)
        self.assertIsNone(self.finding(path))
        # A kernel of which nobody knows the elements.
        path = self.write(made("aten::_foreach_add_", [[[64, 64]], [[64, 64]], []], ["TensorList", "TensorList", "Scalar"], ["", "", "1"], "my_kernel", 500), "k.json")
        self.assertEqual(self.operators(path)[0]["NotJudged"], "lists without types")
        said = " ".join(self.run_command(TACHO, "stats", path, "--by", "operator", "--input-shapes").stdout.decode().split())
        self.assertIn("40 calls of operators on lists of tensors (20.00 ms of GPU time) are not judged: their kernels' names tell no type", said)

    def test_devices(self):
        document = made("aten::mm", [[8192, 8192], [8192, 8192]], self.HALF, ["", ""], "k", 1600, device="AMD Radeon Graphics", units=304,
                        memory=206_000_000_000)
        path = self.write(document)
        said = self.run_command(TACHO, "stats", path, "--by", "operator", "--input-shapes").stdout.decode()
        self.assertIn("Roofs of MI300X", said)
        nobody = self.write(made("aten::mm", [[8192, 8192], [8192, 8192]], self.HALF, ["", ""], "k", 1600, device="Warp 9", units=7, memory=1), "w.json")
        said = self.run_command(TACHO, "stats", nobody, "--by", "operator", "--input-shapes").stdout.decode()
        self.assertIn('The peaks of "Warp 9" are not known', said)
        self.assertIn("Roofs of B200", self.run_command(TACHO, "stats", nobody, "--by", "operator", "--input-shapes", "--device", "b200").stdout.decode())
        wrong = self.run_command(TACHO, "stats", nobody, "--by", "operator", "--input-shapes", "--device", "GeForce 256", code=1)
        self.assertIn("it has V100 SXM2", wrong.stderr.decode())
        self.run_command(TACHO, "stats", nobody, "--device", "b200", code=1)

    def test_gpus_of_several_kinds(self):
        document = made("aten::mm", [[8192, 8192], [8192, 8192]], self.HALF, ["", ""], "k", 1600, calls=4)
        document["deviceProperties"].append({"id": 1, "name": "NVIDIA A40", "numSms": 84, "totalGlobalMem": 48_000_000_000})
        document["traceEvents"] += [{**event, "pid": 1, "args": {**event["args"], "device": 1, "correlation": event["args"]["correlation"] + 100}}
                                    for event in document["traceEvents"] if event["cat"] == "kernel"]
        path = self.write(document)
        said = self.run_command(TACHO, "stats", path, "--by", "operator", "--input-shapes").stderr.decode()
        self.assertIn("GPUs of several kinds", said)
        self.assertEqual((self.operators(path)[0]["NotJudged"], self.operators(path)[0]["PercentOfRoof"]), ("no roof", ""))
        self.assertIsNone(self.finding(path))
        held = self.operators(path, "--device", "L40S")[0]
        self.assertAlmostEqual(float(held["PercentOfRoof"]), 100 * 2 * 8192**3 / 362e12 / 1600e-6, places=3)

    def test_tf32_is_told_by_the_kernel(self):
        float32 = ["float", "float"]
        plain = self.operators(self.write(made("aten::mm", [[4096, 4096], [4096, 4096]], float32, ["", ""], "ampere_sgemm_128x64_nn", 3000)))[0]
        self.assertEqual(plain["Precision"], "f32")
        tensor = self.operators(self.write(made("aten::mm", [[4096, 4096], [4096, 4096]], float32, ["", ""],
                                                "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x16", 500), "t32.json"))[0]
        self.assertEqual(tensor["Precision"], "tf32")

    def test_shapes_that_contradict(self):
        for number, dims in enumerate(([[-1, 4], [4, 4]], [["s0", 4], [4, 4]], [[1e400, 4], [4, 4]], "text", [[3, 4], [5, 6]], [])):
            path = self.write(made("aten::mm", dims, self.HALF, ["", ""], "k", 50), f"bad{number}.json")
            self.assertIsNotNone(self.operators(path))
            self.assertIsNone(self.finding(path))


if __name__ == "__main__":
    main()
