"""One run of PyTorch under `tacho watch`, seen by JSON, Prometheus, OpenTelemetry and the file of sums at once (watch_seeing.sh)."""
import argparse
import csv
import http.server
import io
import json
import pathlib
import re
import subprocess
import sys
import threading
import time
import urllib.request

WORK = """
import time, torch
a = torch.randn(4096, 4096, device="cuda", dtype=torch.half)
x = torch.randn(1 << 20, device="cuda")
begin = time.monotonic()
while time.monotonic() - begin < 20:
    for _ in range(50):
        b = a @ a
        for _ in range(4):
            x = x + 1
    torch.cuda.synchronize()
host = x.cpu()
"""


class Collector:
    def __init__(self):
        self.got = []
        got = self.got

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def smi():
    """{gpu: (MHz of the SMs, W, bytes in use)}"""
    text = subprocess.run(["nvidia-smi", "--query-gpu=index,clocks.sm,power.draw,memory.used", "--format=csv,noheader,nounits"],
                          capture_output=True, text=True, check=True).stdout
    return {int(row[0]): (float(row[1]), float(row[2]), float(row[3]) * (1 << 20)) for row in csv.reader(io.StringIO(text))}


def gauge(page, name):
    return {int(gpu): float(value) for gpu, value in re.findall(rf'^{name}{{gpu="(\d+)"}} (\S+)$', page, re.M)}


def launches_of_message(message):
    found = {}
    for resource in message["resourceMetrics"]:
        for metric in resource["scopeMetrics"][0]["metrics"]:
            if metric["name"] == "tacho.gpu.kernel.launches":
                for point in metric["sum"]["dataPoints"]:
                    found[point["attributes"][0]["value"]["stringValue"]] = int(point["asInt"])
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    tacho = str(pathlib.Path(options.build).resolve() / "bin" / "tacho")
    out = pathlib.Path(options.out).resolve()
    (out / "work.py").write_text(WORK)
    collector = Collector()
    wrong = 0

    def verdict(good, text):
        nonlocal wrong
        wrong += not good
        print(f"{'ok    ' if good else 'WRONG '} {text}", flush=True)
    with open(out / "watch.jsonl", "w") as lines:
        program = subprocess.Popen([tacho, "watch", "--output-format", "json", "--output", str(out / "w.tacho"), "--overwrite", "--prometheus", "127.0.0.1:0",
                                    "--otlp", f"http://127.0.0.1:{collector.server.server_port}", "--interval", "2", "--", sys.executable, str(out / "work.py")],
                                   stderr=subprocess.PIPE, text=True)
        address, page, seen = None, "", None
        last_page = time.monotonic()
        for line in program.stderr:
            if line.startswith("{"):
                lines.write(line)
            else:
                print(line.rstrip())
                found = re.search(r"http://\S+/metrics", line)
                address = found[0] if found else address
            if address and time.monotonic() - last_page > 3 and program.poll() is None:
                try:
                    page, seen = urllib.request.urlopen(address, timeout=5).read().decode(), smi()
                except OSError:
                    pass
                last_page = time.monotonic()
        program.wait()
    moments = [json.loads(line) for line in (out / "watch.jsonl").read_text().splitlines()]
    last = moments[-1]
    counts = {}
    for row in last["rows"]:
        if row["kind"] == "kernel":
            counts[row["name"]] = counts.get(row["name"], 0) + row["count"]
    verdict(program.returncode == 0 and sum(counts.values()) > 1000, f"the run: {sum(counts.values())} launches of {len(counts)} kernels")
    verdict(last["otlp"]["taken"] == len(collector.got) and len(collector.got) > 5, f"OpenTelemetry: {last['otlp']}")
    pushed = launches_of_message(collector.got[-1])
    verdict(sum(pushed.values()) == sum(counts.values()), f"OpenTelemetry: {sum(pushed.values())} launches in the last message")
    table = json.loads(subprocess.run([tacho, "stats", str(out / "w.tacho"), "--output-format", "json"], capture_output=True, text=True, check=True).stdout)
    names = [one["name"] if isinstance(one, dict) else one for one in table["columns"]]
    rows = [dict(zip(names, row)) for row in table["rows"]]
    in_file = sum(row["count"] for row in rows if row["kind"] == "kernel")
    verdict(in_file == sum(counts.values()), f"file of sums: {in_file} launches")
    live = sum(row["total_ns"] or 0 for row in last["rows"] if row["kind"] == "kernel")
    filed = sum(row["total_ns"] or 0 for row in rows if row["kind"] == "kernel")
    verdict(abs(filed / live - 1) < 0.03, f"file of sums: {filed / 1e9:.3f} s of kernels, {live / 1e9:.3f} s at the end of the run")
    if seen:
        clock, power, memory = (gauge(page, name) for name in ("tacho_gpu_core_clock_hertz", "tacho_gpu_power_watts", "tacho_gpu_memory_used_bytes"))
        for gpu, (mhz, watts, used) in seen.items():
            verdict(gpu in clock and abs(clock[gpu] / 1e6 - mhz) <= 0.1 * mhz, f"GPU {gpu}: {clock.get(gpu, 0) / 1e6:.0f} MHz, nvidia-smi {mhz:.0f}")
            verdict(gpu in power and abs(power[gpu] - watts) <= max(30, 0.25 * watts), f"GPU {gpu}: {power.get(gpu, 0):.0f} W, nvidia-smi {watts:.0f}")
            verdict(gpu in memory and abs(memory[gpu] - used) <= 0.05 * used + (1 << 30), f"GPU {gpu}: {memory.get(gpu, 0) / 1e9:.2f} GB in use, nvidia-smi {used / 1e9:.2f}")
    else:
        verdict(False, "no page of metrics was seen")
    for words in (["stats", "w.tacho"], ["diff", "w.tacho", "--before", "6s-12s", "--after", "12s-18s"]):
        print("$ tacho " + " ".join(words))
        print(subprocess.run([tacho, *words], cwd=out, capture_output=True, text=True).stdout)
    print(f"watch_seeing: {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
