"""The measurements of bench/databases.sh: CPU seconds (user + system) of each command, medians of its runs with the 95 %
interval of a bootstrap, and a verdict for every goal. A goal is met when the worse end of the interval meets it."""
import itertools
import json
import os
import random
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time

BUILD, WORK, RUNS, PEER_RUNS = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
TACHO = os.path.join(BUILD, "bin", "tacho")
LARGE, RECORDING, JSON = f"{WORK}/large.rpd", f"{WORK}/large.tacho", f"{WORK}/large.json"
REAL = [f"{os.environ['TACHO_DATA']}/rpd/{name}" for name in ("matmul_result.rpd", "mytrace.rpd")]
UPSTREAM = os.environ.get("UPSTREAM")
if UPSTREAM:
    os.environ["PYTHONPATH"] = f"{UPSTREAM}/rocpd_python"
# Taken once on another machine, for runs without upstream's tools: rpd2tracing.py and rpd_trim.py, CPU seconds.
RECORDED = {"rpd2tracing.py": 97.6, "rpd_trim.py": 18.8}
OUT = f"{WORK}/out"

most_anonymous = (0, "")


def watch(process, command):
    """Keeps the most anonymous memory that was seen of tacho's commands."""
    global most_anonymous
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
                for line in status:
                    if line.startswith("RssAnon:"):
                        most_anonymous = max(most_anonymous, (int(line.split()[1]) / 1024, " ".join(os.path.basename(word) for word in command[:3])))
        except (OSError, ValueError):
            return
        time.sleep(0.02)


def cpu(command):
    """CPU seconds of one run; the output goes nowhere."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryFile("w+") as error:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=error, stdin=subprocess.DEVNULL)
        watcher = threading.Thread(target=watch, args=(process, command))
        if command[0].startswith(BUILD):
            watcher.start()
        process.wait()
        if watcher.ident:
            watcher.join()
        if process.returncode != 0:
            error.seek(0)
            sys.exit(f"{' '.join(command)}: {error.read()}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def sqlite(sql, file=LARGE):
    return [sys.executable, "-c", "import sqlite3, sys\nfor row in sqlite3.connect('file:' + sys.argv[1] + '?mode=ro', uri=True).execute(sys.argv[2]): pass", file, sql]


def tacho(*words):
    return [TACHO, *words]


def measure(commands):
    """{name: CPU s of each run}; rounds run forwards and backwards in turn. commands: (name, command, files it makes)."""
    times = {name: [] for name, *_ in commands}
    for i in range(RUNS):
        for name, command, outputs in commands if i % 2 == 0 else commands[::-1]:
            for path in outputs:
                if os.path.exists(path):
                    os.unlink(path)
            times[name].append(cpu(command))
    for path in itertools.chain.from_iterable(outputs for _, _, outputs in commands):
        if os.path.exists(path):
            os.unlink(path)
    return times


def peer(name, command, prepare=None, outputs=()):
    """CPU s of upstream's tool: runs of it here, or figures recorded elsewhere."""
    if not UPSTREAM:
        return [RECORDED[name]], f"{name}: recorded on another machine"
    times = []
    for _ in range(PEER_RUNS):
        if prepare:
            prepare()
        times.append(cpu(command))
        for path in outputs:
            os.unlink(path)
    return times, f"{name} {statistics.median(times):.1f} s"


def interval(values):
    """Median and the 95 % interval of a bootstrap."""
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(1000))
    return statistics.median(values), medians[25], medians[974]


def ratios(above, below):
    """Of paired runs; of all pairs where one of the two ran less often."""
    if len(above) == len(below):
        return [a / b for a, b in zip(above, below)]
    return [a / b for a in above for b in below]


verdicts = []


def line(what, values, unit, goal, most=False, note=""):
    """One figure and its verdict. most: the goal is an upper bound."""
    middle, low, high = interval(values)
    met = high <= goal if most else low >= goal
    verdicts.append(met)
    print(f"{what:<52} {middle:>8.3f} [{low:.3f}, {high:.3f}] {unit:<9} goal {'<=' if most else '>='} {goal:<5g} {'met' if met else 'MISSED':<7} {note}", flush=True)


def query_rows(path, sql):
    text = subprocess.run(tacho("query", path, sql, "--output-format", "json"), check=True, capture_output=True).stdout
    return json.loads(text)["rows"]


def sqlite_rows(path, sql):
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        return [list(row) for row in database.execute(sql)]


def views():
    """Upstream's views, row for row, over the real files and the two short ones of the large file."""
    wanted = [(path, view) for path in REAL for view in ("top", "ktop", "busy", "api", "op", "kernel", "copy", "copyop")]
    wanted += [(LARGE, view) for view in ("top", "busy")]
    equal = sum(query_rows(path, f"SELECT * FROM {view}") == sqlite_rows(path, f"SELECT * FROM {view}") for path, view in wanted)
    line("views that equal SQLite's row for row", [equal], f"of {len(wanted)}", len(wanted))


def main():
    with sqlite3.connect(f"file:{LARGE}?mode=ro", uri=True) as database:
        api, op = (database.execute(f"SELECT count(*) FROM rocpd_{table}").fetchone()[0] for table in ("api", "op"))
    print(f"{api} API calls, {op} operations; load {os.getloadavg()[0]:.1f}; CPU seconds, median [95 %] of {RUNS} runs\n", flush=True)
    if not os.path.exists(RECORDING):
        cpu(tacho("merge", LARGE, "-o", RECORDING))

    for name, on_rpd, on_tacho in (("top", 2, 0.1), ("busy", 0.5, 0.05)):
        t = measure([("rpd", tacho(name, LARGE), ()), ("tacho", tacho(name, RECORDING), ()), ("sqlite", sqlite(f"SELECT * FROM {name}"), ())])
        line(f"{name}, .rpd", t["rpd"], "s", on_rpd, True, f"SQLite's view {statistics.median(t['sqlite']):.2f} s")
        line(f"{name}, .tacho", t["tacho"], "s", on_tacho, True)

    t = measure([("json", [os.path.join(BUILD, "personalities", "rpd2tracing"), LARGE, f"{OUT}.json"], (f"{OUT}.json",)),
                 ("floor", ["dd", "if=/dev/zero", f"of={OUT}.zero", "bs=1M", "count=4880", "oflag=direct"], (f"{OUT}.zero",)),
                 ("import", tacho("merge", LARGE, "-o", f"{OUT}.tacho"), (f"{OUT}.tacho",)),
                 ("trim", tacho("trim", LARGE, f"{OUT}.rpd", "--start", "25%", "--end", "75%"), (f"{OUT}.rpd",)),
                 ("write .rpd", tacho("export", RECORDING, "-f", "rpd", "-o", f"{OUT}2.rpd"), (f"{OUT}2.rpd",)),
                 ("write .rpd, schema 3", tacho("export", RECORDING, "-f", "rpd", "--rpd-schema", "3", "-o", f"{OUT}3.rpd"), (f"{OUT}3.rpd",)),
                 ("write rocpd", tacho("export", RECORDING, "-f", "rocpd", "-o", f"{OUT}.db"), (f"{OUT}.db",))])
    theirs, note = peer("rpd2tracing.py", [sys.executable, f"{UPSTREAM}/tools/rpd2tracing.py", LARGE, f"{WORK}/peer.json"], outputs=(f"{WORK}/peer.json",))
    line(".rpd to JSON: rpd2tracing.py / tacho", ratios(theirs, t["json"]), "x", 20,
         note=f"{note}, tacho {statistics.median(t['json']):.2f} s; 4.9 GiB of zeros by dd {statistics.median(t['floor']):.2f} s")
    rates = [(api + op) / seconds / 1e6 for seconds in t["import"]]
    line(".rpd to .tacho (calls + operations)", rates, "M rows/s", 5)
    theirs, note = peer("rpd_trim.py", [sys.executable, f"{UPSTREAM}/tools/rpd_trim.py", f"{WORK}/peer.rpd", "--start", "25%", "--end", "75%"],
                        prepare=lambda: subprocess.run(["cp", LARGE, f"{WORK}/peer.rpd"], check=True), outputs=(f"{WORK}/peer.rpd",))
    line("trim 25 %..75 %: rpd_trim.py / tacho", ratios(theirs, t["trim"]), "x", 10, note=f"{note}, tacho {statistics.median(t['trim']):.2f} s")
    for name in ("write .rpd", "write .rpd, schema 3", "write rocpd"):
        line(f"{name} (calls + operations)", [(api + op) / seconds / 1e6 for seconds in t[name]], "M rows/s", 1)

    print("\nqueries: SQLite on the .rpd / tacho", flush=True)
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
        t = measure([("rpd", tacho("query", LARGE, sql, "--output-format", "csv"), ()), ("sqlite", sqlite(sql), ()),
                     ("tacho", tacho("query", RECORDING, sql, "--output-format", "csv"), ())])
        for kind in ("rpd", "tacho"):
            line(f".{kind}: {sql[:44]}", ratios(t["sqlite"], t[kind]), "x", goal, note=f"{statistics.median(t['sqlite']):.2f} s / {statistics.median(t[kind]):.2f} s")

    print()
    size = os.path.getsize(JSON) / 1e6
    t = measure([("import", tacho("merge", JSON, "-o", f"{OUT}.tacho"), (f"{OUT}.tacho",))])
    line(f"Kineto JSON in ({size:.0f} MB)", [size / seconds for seconds in t["import"]], "MB/s", 300)
    views()
    line("most anonymous memory of a command", [most_anonymous[0]], "MiB", 256, True, most_anonymous[1])
    print(f"\n{verdicts.count(True)} of {len(verdicts)} figures met, {verdicts.count(False)} missed")
    if not UPSTREAM:
        print("upstream's tools did not run here: two figures stand against another machine's")
    return 0 if all(verdicts) else 1


sys.exit(main())
