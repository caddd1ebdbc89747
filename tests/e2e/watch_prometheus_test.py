#!/usr/bin/env python3
"""`tacho watch --prometheus`, scraped by a real Prometheus each second: what PromQL answers is what the program did, and each
query of the dashboard for Grafana has an answer."""
import json
import os
import re
import shutil
import socket
import subprocess
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

from harness import BUILD, Case, SOURCE, TACHO, main, sanitized

DRIVER = BUILD / "tests" / "fake_cuda"
PROGRAM = DRIVER / "fake_watched"
UNPACKED = SOURCE / ".cache" / "prometheus" / "usr" / "bin"  # by scripts/packages.sh test
DASHBOARD = SOURCE / "share" / "grafana" / "tacho-watch.json"


def program_of_prometheus(name):
    found = shutil.which(name) or (str(UNPACKED / name) if (UNPACKED / name).exists() else None)
    if found is None:
        message = f"no {name} here: scripts/packages.sh test fetches it"
        if os.environ.get("TACHO_REQUIRE_DATA") == "1":
            raise AssertionError(message)
        raise unittest.SkipTest(message)
    return found


def setUpModule():
    if sanitized():
        raise unittest.SkipTest("a sanitizer's runtime wants to be the first library of a program")
    program_of_prometheus("prometheus")


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def get(address, headers=None):
    with urllib.request.urlopen(urllib.request.Request(address, headers=headers or {}), timeout=20) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def until(what, patience=60):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        try:
            if found := what():
                return found
        except (urllib.error.URLError, ConnectionError):
            pass
        time.sleep(0.1)
    raise AssertionError("waited in vain")


def increase(samples, begin, end):
    """What Prometheus makes of a counter's samples [(time, value)] between two times (promql/functions.go, extrapolatedRate)."""
    values = [value for _, value in samples]
    result = values[-1] - values[0] + sum(before for before, value in zip(values, values[1:]) if value < before)
    first, last = samples[0][0], samples[-1][0]
    to_begin, to_end, sampled = first - begin, end - last, last - first
    each = sampled / (len(samples) - 1)
    if result > 0 and values[0] >= 0:
        to_begin = min(to_begin, sampled * (values[0] / result))
    reach = sum(gap if gap < each * 1.1 else each / 2 for gap in (to_begin, to_end))
    return result * (sampled + reach) / sampled


def quantile(share, buckets):
    """The same of histogram_quantile: [(upper end, cumulative)], sorted, the last one +Inf."""
    wanted = share * buckets[-1][1]
    index = next(i for i, (_, count) in enumerate(buckets) if count >= wanted)
    if index == len(buckets) - 1:
        return buckets[-2][0]
    below_end, below = buckets[index - 1] if index else (0, 0)
    end, count = buckets[index]
    return below_end + (end - below_end) * (wanted - below) / (count - below)


class Scraped(Case):
    def watch(self, work, patience=90):
        """Runs `work`, a shell's words, under tacho watch while Prometheus scrapes it; the page stays until finish()."""
        script = ("while [ ! -e go ]; do sleep 0.05; done; " + work + "; touch done; while [ -e done ] && [ ! -e end ]; do sleep 0.05; done")
        self.program = subprocess.Popen(
            [str(TACHO), "watch", "--prometheus", "127.0.0.1:0", "--output-format", "json", "-o", "w.jsonl", "--interval", "60", "--", "sh", "-c", script],
            cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "LD_LIBRARY_PATH": str(DRIVER / "driver"), "TACHO_NVML": str(BUILD / "tests" / "libstandin_nvml.so")})
        self.addCleanup(self.stop, self.program)
        said = self.program.stderr.readline()
        self.page = re.search(r"http://\S+/metrics", said)[0]
        port = free_port()
        (self.folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n- job_name: tacho\n  static_configs:\n"
            f"  - targets: ['{urllib.parse.urlsplit(self.page).netloc}']\n")
        log = open(self.folder / "prometheus.log", "w")
        self.addCleanup(log.close)
        prometheus = subprocess.Popen(
            [program_of_prometheus("prometheus"), "--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address=127.0.0.1:{port}",
             "--enable-feature=exemplar-storage"], cwd=self.folder, stdout=log, stderr=log, env={**os.environ, "GOMAXPROCS": "2"})
        self.addCleanup(self.stop, prometheus)
        self.server = f"http://127.0.0.1:{port}"
        until(lambda: self.numbers("up") == [1])
        (self.folder / "go").touch()
        until(lambda: (self.folder / "done").exists(), patience)
        done = time.time()
        until(lambda: self.ask("timestamp(up)")[0]["value"][1] > str(done + 1))

    def stop(self, program):
        program.kill()
        program.wait()
        if program.stderr:
            program.stderr.close()

    def finish(self):
        """Ends the program; tacho's last JSON object."""
        (self.folder / "end").touch()
        self.assertEqual(self.program.wait(60), 0)
        return json.loads((self.folder / "w.jsonl").read_text().splitlines()[-1])

    def api(self, path, **parameters):
        answer = json.loads(get(f"{self.server}/api/v1/{path}?{urllib.parse.urlencode(parameters)}")[1])
        self.assertEqual(answer["status"], "success", answer)
        return answer["data"]

    def ask(self, query, **more):
        return self.api("query", query=query, **more)["result"]

    def numbers(self, query, **more):
        return [float(one["value"][1]) for one in self.ask(query, **more)]

    def number(self, query, **more):
        [value] = self.numbers(query, **more)
        return value


class PromQL(Scraped):
    def sums(self, kind, what="count"):
        sums = {}
        for row in self.last["rows"]:
            if row["kind"] == kind:
                sums[row["name"]] = sums.get(row["name"], 0) + row.get(what, 0)
        return sums

    def test_answers_are_what_the_program_did(self):
        self.watch(f"for i in 1 2 3 4 5 6; do {PROGRAM} dlsym plain 20000; {PROGRAM} address graph 200; sleep 1; done")
        now = round(time.time(), 3)  # in its own unit
        families = (("tacho_kernel_launches_total", "kernel", "kernel", "count"), ("tacho_graph_launches_total", "graph", "graph", "count"),
                    ("tacho_copies_total", "direction", "copy", "count"), ("tacho_copied_bytes_total", "direction", "copy", "bytes"),
                    ("tacho_waits_total", "call", "wait", "count"), ("tacho_allocations_total", "kind", "allocation", "count"),
                    ("tacho_allocated_bytes_total", "kind", "allocation", "bytes"))
        found = {family: {one["metric"][label]: float(one["value"][1]) for one in self.ask(family)} for family, label, *_ in families}
        failed = self.number("tacho_failed_operations_total")
        self.assertEqual(self.number("min_over_time(up[5m])"), 1)
        self.assertEqual({one["metric"]["gpu"]: round(float(one["value"][1]), 9) for one in self.ask("tacho_gpu_busy_ratio")}, {"0": 0.4, "1": 0.41})
        self.rates(now)
        quantiles = self.quantiles()
        longest = self.exemplars(now)
        self.forms()
        self.dashboard()
        self.last = self.finish()
        for family, _, kind, what in families:
            with self.subTest(family):
                self.assertEqual(found[family], self.sums(kind, what))
                self.assertGreater(sum(found[family].values()), 0)
        self.assertEqual(failed, self.last["failed"])
        for row in self.last["rows"]:
            if row["kind"] == "kernel":  # the same bucket holds tacho's own median
                self.assertEqual(longest[row["name"]], row["longest_ns"] * 1e-9)
                below, above = quantiles[row["name"]]
                self.assertTrue(below <= row["p50_ns"] * 1e-9 <= above, row)

    def rates(self, now):
        for series in ('tacho_kernel_launches_total{kernel="often_1000"}', 'tacho_copied_bytes_total{direction="host to device"}',
                       'tacho_kernel_duration_seconds_sum{kernel="seldom_50000"}'):
            [one] = self.ask(f"{series}[20s]", time=now)
            samples = [(at, float(value)) for at, value in one["values"]]
            self.assertGreater(len(samples), 5)
            expected = increase(samples, now - 20, now)
            self.assertGreater(expected, 0)
            self.assertAlmostEqual(self.number(f"increase({series}[20s])", time=now) / expected, 1, delta=1e-6)
            self.assertAlmostEqual(self.number(f"rate({series}[20s])", time=now) / expected * 20, 1, delta=1e-6)
            self.assertEqual([value for _, value in samples], sorted(value for _, value in samples))

    def quantiles(self):
        """{kernel: the bucket of its median}"""
        found = {}
        for name in ("often_1000", "seldom_50000"):
            series = f'tacho_kernel_duration_seconds_bucket{{kernel="{name}"}}'
            buckets = sorted((float(one["metric"]["le"]), float(one["value"][1])) for one in self.ask(series))
            for share in (0.5, 0.99):
                expected = quantile(share, buckets)
                self.assertAlmostEqual(self.number(f"histogram_quantile({share}, {series})") / expected, 1, delta=1e-9)
            index = next(i for i, (_, count) in enumerate(buckets) if count >= buckets[-1][1] / 2)
            found[name] = (buckets[index - 1][0] if index else 0, buckets[index][0])
        return found

    def exemplars(self, now):
        found = {}
        for one in self.api("query_exemplars", query="tacho_kernel_duration_seconds_bucket", start=now - 60, end=now + 5):
            for each in one["exemplars"]:
                found[one["seriesLabels"]["kernel"]] = (each["labels"], float(each["value"]), float(one["seriesLabels"]["le"]))
        for labels, value, end in found.values():
            self.assertEqual(labels, {"shape": "4096/256"})
            self.assertTrue(value < end and (end / 2 <= value or end == 1.024e-6), (value, end))
        return {name: value for name, (_, value, _) in found.items()}

    def forms(self):
        """Both forms hold the same numbers; promtool finds nothing to criticize."""
        kind, plain = get(self.page)
        self.assertEqual(kind, "text/plain; version=0.0.4; charset=utf-8")
        kind, open_form = get(self.page, {"Accept": "application/openmetrics-text; version=1.0.0, text/plain;q=0.5"})
        self.assertEqual(kind, "application/openmetrics-text; version=1.0.0; charset=utf-8")
        self.assertTrue(open_form.endswith("# EOF\n"))

        def samples(text):
            lines = [line.split(" # ")[0] for line in text.splitlines() if not line.startswith("#")]
            return [line for line in lines if not line.startswith("tacho_watch_")]  # what watching costs goes on growing
        self.assertEqual(samples(plain), samples(open_form))
        self.assertEqual(get(self.page, {"Accept": "application/openmetrics-text;q=0.1, text/plain"})[1][-6:], plain[-6:])
        checked = subprocess.run([program_of_prometheus("promtool"), "check", "metrics"], input=plain, capture_output=True, text=True)
        self.assertEqual((checked.returncode, checked.stdout, checked.stderr), (0, "", ""))

    def dashboard(self):
        """Each query of the dashboard has an answer, of families that the endpoint has."""
        page = json.loads(DASHBOARD.read_text())
        families = set(re.findall(r"^([a-z_]+)(?:\{| )", get(self.page)[1], re.M))
        asked = 0
        for panel in page["panels"]:
            for target in panel.get("targets", []):
                with self.subTest(panel["title"], query=target["expr"]):
                    query = (target["expr"].replace("$__rate_interval", "20s").replace("$__range", "1m").replace("$instance", ".*").replace("$job", "tacho"))
                    self.assertNotIn("$", query)
                    names = set(re.findall(r"\btacho_[a-z_]+", query))
                    self.assertTrue(names)
                    optional = {"tacho_watch_cost_ratio", "tacho_watch_cost_ratio_high", "tacho_fills_total", "tacho_filled_bytes_total"}
                    self.assertEqual(names - families - optional, set())
                    answer = self.ask(query)
                    # As Grafana asks: a point each second, and names of series by their labels.
                    points = self.api("query_range", query=query, start=time.time() - 20, end=time.time(), step=1)
                    self.assertEqual(points["resultType"], "matrix")
                    if names <= families:
                        self.assertTrue(answer)
                        self.assertTrue(any(one["values"] for one in points["result"]))
                        for label in re.findall(r"{{(\w+)}}", target["legendFormat"]):
                            self.assertTrue(all(one["metric"].get(label) for one in points["result"]), label)
                    asked += 1
        self.assertGreater(asked, 8)
        values = {}
        for one in page["templating"]["list"]:
            if one["type"] == "query":
                series, label = re.fullmatch(r"label_values\((.+), (\w+)\)", one["query"]["query"]).groups()
                values[one["name"]] = {each[label] for each in self.api("series", **{"match[]": series.replace("$job", ".*")})}
        self.assertEqual(values, {"job": {"tacho"}, "instance": {urllib.parse.urlsplit(self.page).netloc}})

    def test_names_are_bounded(self):
        self.watch(f"{PROGRAM} dlsym many 3 5000 >/dev/null", patience=120)
        self.assertEqual(self.number("count(tacho_kernel_launches_total)"), 101)
        self.assertEqual(self.number("sum(tacho_kernel_launches_total)"), 15000)
        self.assertEqual(self.number("tacho_uncounted_operations_total"), 0)
        self.assertGreater(self.number('tacho_kernel_launches_total{kernel="other"}'), 14000)
        self.assertLess(self.number("scrape_samples_scraped"), 101 * 30 + 200)
        self.finish()


class Dashboard(unittest.TestCase):
    """What Grafana needs of a dashboard that people import."""
    # Names as Grafana's schemas have them (grafana-foundation-sdk 0.0.21): it passes over what it does not know.
    UNITS = {"short", "s", "Bps", "percentunit", "cps", "hertz", "watt", "bytes"}
    OPTIONS = {"stat": {"graphMode", "colorMode", "justifyMode", "textMode", "wideLayout", "showPercentChange", "reduceOptions", "text", "orientation"},
               "timeseries": {"timezone", "legend", "tooltip", "orientation"},
               "heatmap": {"calculate", "calculation", "color", "filterValues", "rowsFrame", "showValue", "cellGap", "cellRadius", "cellValues", "yAxis", "legend",
                           "tooltip", "exemplars", "selectionMode"}}
    FIELDS = {"stat": set(), "heatmap": {"scaleDistribution", "hideFrom"},
              "timeseries": {"drawStyle", "gradientMode", "lineWidth", "lineInterpolation", "fillOpacity", "showPoints", "pointSize", "axisPlacement", "axisLabel",
                             "scaleDistribution", "stacking", "spanNulls", "hideFrom"}}
    TARGET = {"datasource", "refId", "expr", "legendFormat", "range", "instant", "format", "editorMode", "interval", "exemplar", "hide"}

    def test_form(self):
        page = json.loads(DASHBOARD.read_text())
        self.assertIsNone(page["id"])
        self.assertRegex(page["uid"], r"^[a-z0-9-]{1,40}$")
        self.assertGreaterEqual(page["schemaVersion"], 36)
        self.assertTrue(page["title"])
        variables = {one["name"]: one for one in page["templating"]["list"]}
        self.assertEqual((variables["datasource"]["type"], variables["datasource"]["query"]), ("datasource", "prometheus"))
        self.assertEqual({one["id"] for one in page["panels"]}, set(range(1, len(page["panels"]) + 1)))
        taken = set()
        for panel in page["panels"]:
            at = panel["gridPos"]
            self.assertLessEqual(at["x"] + at["w"], 24)
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            self.assertEqual(cells & taken, set(), panel["title"])
            taken |= cells
            if panel["type"] == "row":
                continue
            self.assertEqual(panel["datasource"], {"type": "prometheus", "uid": "${datasource}"})
            self.assertEqual(len({one["refId"] for one in panel["targets"]}), len(panel["targets"]))
            defaults = panel["fieldConfig"]["defaults"]
            self.assertIn(defaults["unit"], self.UNITS)
            self.assertEqual(set(panel["options"]) - self.OPTIONS[panel["type"]], set(), panel["title"])
            self.assertEqual(set(defaults.get("custom", {})) - self.FIELDS[panel["type"]], set(), panel["title"])
            for target in panel["targets"]:
                self.assertEqual(target["datasource"], panel["datasource"])
                self.assertEqual(set(target) - self.TARGET, set(), panel["title"])
                self.assertEqual((target["format"], target["range"], target["instant"]), ("heatmap" if panel["type"] == "heatmap" else "time_series", True, False))


if __name__ == "__main__":
    main()
