#!/usr/bin/env python3
"""`tacho watch --otlp`: a collector gets what the program did, as OTLP's JSON; what it refuses or never answers is counted, and
holds up nobody."""
import http.server
import json
import socket
import threading
import time
import unittest

from harness import BUILD, Case, TACHO, main, sanitized

DRIVER = BUILD / "tests" / "fake_cuda"
PROGRAM = DRIVER / "fake_watched"
ENVIRONMENT = {"LD_LIBRARY_PATH": str(DRIVER / "driver"), "TACHO_NVML": str(BUILD / "tests" / "libstandin_nvml.so"), "TACHO_AMD_SMI": "", "TACHO_ROCM_SMI": ""}


def setUpModule():
    if sanitized():
        raise unittest.SkipTest("a sanitizer's runtime wants to be the first library of a program")


class Collector:
    """Keeps what is posted; `answer` gives status, headers and body."""

    def __init__(self, answer=lambda number: (200, {}, b"{}")):
        self.got = []
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.got.append((time.monotonic(), self.path, dict(self.headers), json.loads(body)))
                status, headers, body = answer(len(collector.got))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def attributes(one):
    return {each["key"]: int(each["value"]["intValue"]) if "intValue" in each["value"] else each["value"]["stringValue"] for each in one["attributes"]}


class Otlp(Case):
    def collector(self, *answer):
        collector = Collector(*answer)
        self.addCleanup(collector.close)
        return collector

    def watch(self, address, work, interval="0.3", **more):
        result = self.run_command(TACHO, "watch", "--otlp", address, "--output-format", "json", "-o", "w.jsonl", "--overwrite", "--interval", interval,
                                  "--", "sh", "-c", work, env={**ENVIRONMENT, **more.pop("env", {})}, **more)
        self.said = result.stderr.decode()
        return json.loads((self.folder / "w.jsonl").read_text().splitlines()[-1])

    def metrics(self, message):
        """[(attributes of the resource, {name: (kind, metric)})]; checks the rules of metrics.proto."""
        self.assertEqual(list(message), ["resourceMetrics"])
        found = []
        for resource in message["resourceMetrics"]:
            [scope] = resource["scopeMetrics"]
            self.assertEqual(scope["scope"]["name"], "tacho")
            named = {}
            for metric in scope["metrics"]:
                [kind] = set(metric) & {"gauge", "sum", "histogram"}
                self.assertRegex(metric["name"], r"^[a-z][a-z0-9_.]{0,254}$")
                self.assertNotIn(metric["name"], named)
                self.assertEqual(metric[kind].get("aggregationTemporality"), None if kind == "gauge" else 2)
                points = metric[kind]["dataPoints"]
                self.assertEqual(len({json.dumps(point["attributes"]) for point in points}), len(points), metric["name"])
                for point in points:
                    self.assertLess(int(point["startTimeUnixNano"]), int(point["timeUnixNano"]))
                    if kind == "histogram":
                        self.assertEqual(len(point["bucketCounts"]), len(point["explicitBounds"]) + 1)
                        self.assertEqual(sum(int(count) for count in point["bucketCounts"]), int(point["count"]))
                        self.assertEqual(point["explicitBounds"], sorted(point["explicitBounds"]))
                named[metric["name"]] = (kind, metric)
            found.append((attributes(resource["resource"]), named))
        return found

    def test_what_the_program_did(self):
        collector = self.collector()
        last = self.watch(collector.address, f"{PROGRAM} dlsym plain 20000 >/dev/null; sleep 0.5; {PROGRAM} address graph 300 >/dev/null; sleep 0.5")
        self.assertGreaterEqual(len(collector.got), 3)
        self.assertEqual(last["otlp"], {"taken": len(collector.got), "refused": 0, "unanswered": 0, "rejected_points": 0})
        self.assertEqual({(path, headers["Content-Type"]) for _, path, headers, _ in collector.got}, {("/v1/metrics", "application/json")})
        messages = [self.metrics(message) for *_, message in collector.got]
        self.assertEqual(len({point["startTimeUnixNano"] for of in messages for _, named in of for kind, one in named.values()
                              for point in one[kind]["dataPoints"]}), 1)
        resource, named = messages[-1][0]
        self.assertEqual((resource["service.name"], resource["host.name"]), ("sh", socket.gethostname()))

        def sums(name, key):
            kind, metric = named[name]
            self.assertTrue(metric[kind]["isMonotonic"])
            return {attributes(point)[key]: int(point["asInt"]) for point in metric[kind]["dataPoints"]}

        def rows(kind, what):
            found = {}
            for row in last["rows"]:
                if row["kind"] == kind:
                    found[row["name"]] = found.get(row["name"], 0) + row[what]
            return found
        for name, key, kind, what in (("tacho.gpu.kernel.launches", "tacho.kernel.name", "kernel", "count"),
                                      ("tacho.gpu.graph.launches", "tacho.graph.name", "graph", "count"),
                                      ("tacho.gpu.copy.count", "tacho.copy.direction", "copy", "count"),
                                      ("tacho.gpu.copy.io", "tacho.copy.direction", "copy", "bytes"),
                                      ("tacho.sync.count", "code.function.name", "wait", "count"),
                                      ("tacho.allocation.io", "tacho.allocation.kind", "allocation", "bytes")):
            with self.subTest(name):
                self.assertEqual(sums(name, key), rows(kind, what))
                self.assertTrue(rows(kind, what))
        for point in named["tacho.gpu.kernel.duration"][1]["histogram"]["dataPoints"]:
            name = attributes(point)["tacho.kernel.name"]
            self.assertAlmostEqual(point["sum"] * 1e9 / rows("kernel", "total_ns")[name], 1, delta=0.35)
        [failed] = named["tacho.watch.failed"][1]["sum"]["dataPoints"]
        self.assertEqual(int(failed["asInt"]), last["failed"])

    def test_gpus_and_processes(self):
        collector = self.collector()
        last = self.watch(collector.address, f"timeout 2 {PROGRAM} dlsym plain 2000000000; true", env={"OTEL_SERVICE_NAME": "train"})
        self.assertEqual({(one["gpu"], one["name"]): one["value"] for one in last["gpus"]}[(1, "GFX Busy")], 41)
        during = [self.metrics(message) for *_, message in collector.got]
        resource, named = during[-1][0]
        self.assertEqual(resource["service.name"], "train")
        busy = {attributes(point)["hw.id"]: point["asDouble"] for point in named["hw.gpu.utilization"][1]["gauge"]["dataPoints"]}
        self.assertEqual(set(busy), {"GPU 0", "GPU 1"})
        self.assertAlmostEqual(busy["GPU 0"], 0.4)
        for name, kind, unit in (("hw.power", "gauge", "W"), ("hw.temperature", "gauge", "Cel"), ("hw.energy", "sum", "J"), ("hw.gpu.memory.usage", "sum", "By")):
            self.assertEqual((named[name][0], named[name][1]["unit"]), (kind, unit))
        self.assertIn("tacho.counter.core_clock", named)
        processes = [(resource, named) for of in during for resource, named in of[1:]]
        self.assertTrue(processes)
        resource, named = processes[-1]
        self.assertEqual(resource["process.executable.name"], "fake_watched")
        self.assertGreater(resource["process.pid"], 0)
        times = {attributes(point)["cpu.mode"]: point["asDouble"] for point in named["process.cpu.time"][1]["sum"]["dataPoints"]}
        self.assertEqual(set(times), {"user", "system"})
        self.assertGreater(sum(times.values()), 0)
        self.assertGreater(int(named["process.memory.usage"][1]["sum"]["dataPoints"][0]["asInt"]), 1 << 16)
        self.assertIn("process.thread.count", named)

    def test_a_collector_that_refuses(self):
        collector = self.collector(lambda number: (400, {}, b"no"))
        began = time.monotonic()
        last = self.watch(collector.address + "/otel/", "sleep 4", interval="0.2")
        self.assertLess(time.monotonic() - began, 10)
        self.assertEqual({path for _, path, *_ in collector.got}, {"/otel/v1/metrics"})
        self.assertEqual((last["otlp"]["taken"], last["otlp"]["refused"], last["otlp"]["unanswered"]), (0, len(collector.got), 0))
        # 0.2, 0.4, 0.8, 1.6 s apart, and once at the end.
        self.assertLessEqual(len(collector.got), 6)
        [sentence] = [note for note in last["notes"] if collector.address in note]
        self.assertIn("400 Bad Request", sentence)

    def test_a_collector_that_wants_to_be_left_alone(self):
        collector = self.collector(lambda number: (503, {"Retry-After": "2"}, b"") if number == 1 else (200, {}, b"{}"))
        self.watch(collector.address, "sleep 3.5", interval="0.2")
        self.assertGreaterEqual(collector.got[1][0] - collector.got[0][0], 1.9)
        self.assertGreater(len(collector.got), 3)  # the rhythm is as before

    def test_a_collector_that_takes_a_part(self):
        collector = self.collector(lambda number: (200, {}, b'{"partialSuccess": {"rejectedDataPoints": "3", "errorMessage": "too many"}}'))
        last = self.watch(collector.address, "sleep 0.5")
        self.assertEqual(last["otlp"]["rejected_points"], 3 * len(collector.got))

    def test_nobody_listens(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"http://127.0.0.1:{free.getsockname()[1]}"
        last = self.watch(address, "sleep 1")
        self.assertEqual((last["otlp"]["taken"], last["otlp"]["refused"]), (0, 0))
        self.assertGreaterEqual(last["otlp"]["unanswered"], 2)
        text = self.run_command(TACHO, "watch", "--otlp", address, "--", "true").stderr.decode()
        self.assertIn(f"1 of 1 pushes to {address}/v1/metrics failed: 0 refused, 1 without an answer; the last time Connection refused.", " ".join(text.split()))

    def test_a_collector_that_never_answers(self):
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            began = time.monotonic()
            last = self.watch(f"http://127.0.0.1:{silent.getsockname()[1]}", "sleep 0.5; exit 7", code=7)
            self.assertLess(time.monotonic() - began, 8)
            self.assertEqual((last["otlp"]["taken"], last["otlp"]["refused"]), (0, 0))
            self.assertGreaterEqual(last["otlp"]["unanswered"], 1)

    def test_something_else_than_http(self):
        with socket.socket() as odd:
            odd.bind(("127.0.0.1", 0))
            odd.listen()

            def answer():
                while True:
                    try:
                        connection, _ = odd.accept()
                    except OSError:
                        return
                    connection.recv(1 << 16)
                    connection.sendall(b"220 mail.example.org ESMTP\r\n")
                    connection.close()
            thread = threading.Thread(target=answer, daemon=True)
            thread.start()
            last = self.watch(f"http://127.0.0.1:{odd.getsockname()[1]}", "sleep 0.5")
            odd.shutdown(socket.SHUT_RDWR)
        self.assertEqual(last["otlp"]["taken"], 0)
        self.assertGreaterEqual(last["otlp"]["unanswered"], 1)

    def test_bad_addresses(self):
        for address, needle in (("https://127.0.0.1:4318", "no TLS"), ("127.0.0.1:4318", "http://HOST:PORT"), ("http://", "http://HOST:PORT"),
                                ("http://host:0", "no port"), ("http://host:many", "no port"), ("http://me:secret@host", "port"), ("http://host/a?b", "http://HOST:PORT")):
            with self.subTest(address):
                self.one_sentence(self.run_command(TACHO, "watch", "--otlp", address, "--", "true", code=125), "--otlp", needle)


if __name__ == "__main__":
    main()
