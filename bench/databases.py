"""The measurements of bench/databases.sh: CPU seconds (user + system) of each command, the median of its runs."""
import os
import resource
import statistics
import subprocess
import sys
import time

BUILD, WORK, RUNS = sys.argv[1], sys.argv[2], int(sys.argv[3])
TACHO = os.path.join(BUILD, "bin", "tacho")
LARGE, RECORDING = f"{WORK}/large.rpd", f"{WORK}/large.tacho"
UPSTREAM = os.environ.get("UPSTREAM")
# Taken once on the reference machine (reference/rpd.md, section 12), for runs without UPSTREAM.
TRACING_PY, TRIM_PY = 97.6, 18.8


def cpu(command):
    """(CPU s, wall s) of one run; the output goes nowhere."""
    begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    error = process.stderr.read()
    if process.wait() != 0:
        sys.exit(f"{' '.join(command)}: {error}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.monotonic() - begin


def sqlite(sql, file=LARGE):
    return [sys.executable, "-c", "import sqlite3, sys\nfor row in sqlite3.connect('file:' + sys.argv[1] + '?mode=ro', uri=True).execute(sys.argv[2]): pass", file, sql]


def tacho(*words):
    return [TACHO, *words]


def measure(pairs):
    """{name: CPU s} of named commands, run one after the other, RUNS times."""
    times = {name: [] for name, _, _ in pairs}
    for _ in range(RUNS):
        for name, command, output in pairs:
            for path in output:
                if os.path.exists(path):
                    os.unlink(path)
            times[name].append(cpu(command)[0])
    return {name: statistics.median(values) for name, values in times.items()}


verdicts = []


def line(what, value, unit, goal, met, note=""):
    verdicts.append(met)
    print(f"{what:<44} {value:>9.3f} {unit:<8} goal {goal:<14} {'met' if met else 'MISSED':<7} {note}", flush=True)


def rows(sql):
    import sqlite3
    return sqlite3.connect(f"file:{LARGE}?mode=ro", uri=True).execute(sql).fetchone()[0]


def main():
    load = os.getloadavg()[0]
    api, op = rows("SELECT count(*) FROM rocpd_api"), rows("SELECT count(*) FROM rocpd_op")
    
    print(f"{api} API calls, {op} operations; load {load:.1f}; CPU seconds, median of {RUNS}\n")
    if not os.path.exists(RECORDING):
        cpu(tacho("merge", LARGE, "-o", RECORDING))

    t = measure([("rpd", tacho("top", LARGE), ()), ("tacho", tacho("top", RECORDING), ()), ("sqlite", sqlite("SELECT * FROM top"), ())])
    line("top, .rpd", t["rpd"], "s", "<= 2", t["rpd"] <= 2, f"SQLite's view {t['sqlite']:.2f} s")
    line("top, .tacho", t["tacho"], "s", "<= 0.1", t["tacho"] <= 0.1)
    t = measure([("rpd", tacho("busy", LARGE), ()), ("tacho", tacho("busy", RECORDING), ()), ("sqlite", sqlite("SELECT * FROM busy"), ())])
    line("busy, .rpd", t["rpd"], "s", "<= 0.5", t["rpd"] <= 0.5, f"SQLite's view {t['sqlite']:.2f} s")
    line("busy, .tacho", t["tacho"], "s", "<= 0.05", t["tacho"] <= 0.05)

    out = f"{WORK}/out"
    t = measure([("json", [os.path.join(BUILD, "personalities", "rpd2tracing"), LARGE, f"{out}.json"], (f"{out}.json",)),
                 ("import", tacho("merge", LARGE, "-o", f"{out}.tacho"), (f"{out}.tacho",)),
                 ("trim", tacho("trim", LARGE, f"{out}.rpd", "--start", "25%", "--end", "75%"), (f"{out}.rpd",)),
                 ("write rpd", tacho("export", RECORDING, "-f", "rpd", "-o", f"{out}2.rpd"), (f"{out}2.rpd",)),
                 ("write rpd 3", tacho("export", RECORDING, "-f", "rpd", "--rpd-schema", "3", "-o", f"{out}3.rpd"), (f"{out}3.rpd",)),
                 ("write rocpd", tacho("export", RECORDING, "-f", "rocpd", "-o", f"{out}.db"), (f"{out}.db",))])
    peer_json, peer_trim = TRACING_PY, TRIM_PY
    if UPSTREAM:
        peer_json = cpu([sys.executable, f"{UPSTREAM}/tools/rpd2tracing.py", LARGE, f"{WORK}/peer.json"])[0]
        os.unlink(f"{WORK}/peer.json")
        subprocess.run(["cp", LARGE, f"{WORK}/peer.rpd"], check=True)
        peer_trim = cpu([sys.executable, f"{UPSTREAM}/tools/rpd_trim.py", f"{WORK}/peer.rpd", "--start", "25%", "--end", "75%"])[0]
        os.unlink(f"{WORK}/peer.rpd")
    line(".rpd -> JSON: rpd2tracing.py / tacho", peer_json / t["json"], "x", ">= 20", peer_json / t["json"] >= 20, f"{peer_json:.1f} s / {t['json']:.2f} s")
    line(".rpd -> .tacho", (api + op) / t["import"] / 1e6, "M rows/s", ">= 5", (api + op) / t["import"] >= 5e6, f"{t['import']:.2f} s")
    line("trim 25 %..75 %: rpd_trim.py / tacho", peer_trim / t["trim"], "x", ">= 10", peer_trim / t["trim"] >= 10, f"{peer_trim:.1f} s / {t['trim']:.2f} s")
    for name in ("write rpd", "write rpd 3", "write rocpd"):
        rate = (api + op) / t[name] / 1e6
        line(f"{name} (calls + operations)", rate, "M rows/s", ">= 1", rate >= 1, f"{t[name]:.2f} s")
    for ending in (".json", ".tacho", ".rpd", "2.rpd", "3.rpd", ".db"):
        os.unlink(out + ending)

    print()
    for sql, goal in (("SELECT apiName, count(*) FROM api GROUP BY apiName", 4),
                      ("SELECT description, count(*), sum(end - start) FROM op GROUP BY description", 4),
                      ("SELECT opType, count(*), avg(end - start) FROM op GROUP BY opType", 4),
                      ("SELECT tid, count(*) FROM rocpd_api GROUP BY tid", 1),
                      ("SELECT count(*), max(end - start) FROM op WHERE description LIKE 'Cijk%'", 1),
                      ("SELECT count(*) FROM api WHERE args LIKE '%aten::mm%'", 1),
                      ("SELECT * FROM op ORDER BY end - start DESC LIMIT 10", 1),
                      ("SELECT apiName, opType, count(*) FROM rocpd_api_ops L JOIN api A ON A.id = L.api_id JOIN op O ON O.id = L.op_id GROUP BY 1, 2", 1),
                      ("SELECT S.string, count(*) FROM rocpd_kernelapi K JOIN rocpd_string S ON S.id = K.kernelName_id GROUP BY S.string", 1),
                      ("SELECT (end - start) / 1000 AS us, count(*) FROM rocpd_op GROUP BY us ORDER BY 2 DESC LIMIT 5", 1)):
        for file, label in ((LARGE, ".rpd"), (RECORDING, ".tacho")):
            t = measure([("tacho", tacho("query", file, sql, "--output-format", "csv"), ()), ("sqlite", sqlite(sql), ())])
            ratio = t["sqlite"] / t["tacho"]
            line(f"query {label}: {sql[:36]}", ratio, "x SQLite", f">= {goal}", ratio >= goal, f"{t['sqlite']:.2f} s / {t['tacho']:.2f} s")

    print()
    size = os.path.getsize(f"{WORK}/large.json") / 1e6
    t = measure([("import", tacho("merge", f"{WORK}/large.json", "-o", f"{out}.tacho"), (f"{out}.tacho",))])
    os.unlink(f"{out}.tacho")
    line(f"Kineto JSON in ({size:.0f} MB)", size / t["import"], "MB/s", ">= 300", size / t["import"] >= 300, f"{t['import']:.2f} s")
    return 0 if all(verdicts) else 1


sys.exit(main())
