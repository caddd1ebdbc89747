"""Measures the server of `tacho view`: bench/view.sh runs it.

    view.py TACHO FILE [ANSWERS.json]

Prints the time to the first answers, while the index is built, tile latencies at several zooms once it is there, search, tables
of a span, and memory. Exits with 1 where a goal is missed.
"""
import http.client
import json
import pathlib
import random
import struct
import subprocess
import sys
import time


class Server:
    def __init__(self, tacho, file):
        self.began = time.monotonic()
        self.process = subprocess.Popen([tacho, "view", "--no-open", "--port", "0", file], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        url = self.process.stdout.readline().strip()
        self.port = int(url.split(":")[2].split("/")[0])
        self.token = url.split("token=")[1]
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port)

    def get(self, path):
        self.connection.request("GET", path, headers={"X-Tacho-Token": self.token})
        answer = self.connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise SystemExit(f"view.py: {path}: {answer.status}: {body!r}")
        return body

    def memory(self, field="RssAnon"):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1024
        return 0.0

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Result:
    def __init__(self):
        self.missed = []
        self.values = {}

    def put(self, name, value, unit, goal=None):
        verdict = ""
        if goal is not None:
            verdict = f"  goal {goal:g}  {'ok' if value <= goal else 'MISSED'}"
            if value > goal:
                self.missed.append(name)
        self.values[name] = value
        print(f"{name:<58} {value:10.2f} {unit}{verdict}", flush=True)


def milliseconds(call):
    began = time.monotonic()
    call()
    return (time.monotonic() - began) * 1000


def main(tacho, file, answers=None):
    result = Result()
    server = Server(tacho, file)
    document = json.loads(server.get("/api/document"))
    result.put("address and document", (time.monotonic() - server.began) * 1000, "ms")
    overview = json.loads(server.get("/api/overview?run=0"))
    result.put("first paint's data: document and overview", (time.monotonic() - server.began) * 1000, "ms", 1000)
    run = document["runs"][0]
    print(f"{run['events']:,} events, {len(run['tracks'])} lines; overview provisional: {overview['provisional']}")
    peak = server.memory()
    while json.loads(server.get("/api/document"))["runs"][0]["ready"] < 1:
        peak = max(peak, server.memory())
        time.sleep(0.1)
    result.put("index complete", time.monotonic() - server.began, "s")
    result.put("anonymous memory while indexing, most", peak, "MB", 256)
    result.put("overview from the index", milliseconds(lambda: server.get("/api/overview?run=0")), "ms")
    length = run["length"]
    lines = [track["id"] for track in run["tracks"]]
    tracks = ",".join(map(str, lines))
    whole = 0
    while (512 << whole) < length:
        whole += 1
    random.seed(1)
    for level in range(whole, max(whole - 22, 0), -3):
        times, kinds, size = [], {}, 0
        for _ in range(12):
            index = random.randrange((length >> level >> 9) + 1)
            began = time.monotonic()
            body = server.get(f"/api/tiles?run=0&level={level}&index={index}&tracks={tracks}")
            times.append((time.monotonic() - began) * 1000)
            size = max(size, len(body))
            at = 0
            while at < len(body):
                magic, _, kind, _, _, _, step = struct.unpack_from("<IIBBHII", body, at)
                if magic != 0x4C495454:
                    raise SystemExit("view.py: a tile without its magic number")
                kinds[kind] = kinds.get(kind, 0) + 1
                at += step
        times.sort()
        name = f"tiles of all lines, level {level} ({(512 << level) / length:.1e} of the run)"
        result.put(name + ", median", times[len(times) // 2], "ms")
        result.put(name + ", slowest", times[-1], "ms")
        print(f"    {size:,} bytes at most, kinds {kinds}")
        peak = max(peak, server.memory())
    for word in ("layer17::", "AllReduce", "checkpoint", "runtimeCall1$", "no such name"):
        result.put(f"search for {word!r}, first hits",
                   milliseconds(lambda: server.get(f"/api/search?run=0&limit=1000&q={word.replace(' ', '%20')}")), "ms", 200)
    for share in (1, 0.3, 0.01, 0.0001):
        begin = int(length * 0.4 * (1 - share))
        end = begin + int(length * share)
        result.put(f"tables of {share:g} of the run", milliseconds(lambda: server.get(f"/api/span?run=0&from={begin}&to={end}")), "ms")
    peak = max(peak, server.memory())
    result.put("anonymous memory, most", peak, "MB", 256)
    result.put("resident memory with mapped files", server.memory("VmRSS"), "MB")
    server.stop()
    if answers:
        pathlib.Path(answers).write_text(json.dumps(result.values, indent=1))
    if result.missed:
        raise SystemExit("missed: " + "; ".join(result.missed))


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
