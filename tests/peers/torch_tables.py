"""The tables of HTA and TraceLens, of torch.profiler's file and of tacho's export of it (hta.sh).

Both tools let the order of events in the file decide between equal times, and torch.profiler's files are in no order. The original is
therefore sorted by time first, as tacho's files are. torch.profiler for AMD leaves out some arrows from calls to kernels; TraceLens then
leaves out the kernels. The original gets them, and the script says how many.
"""
import collections
import contextlib
import gzip
import io
import json
import logging
import numbers
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
import pandas  # noqa: E402

WORK = ("kernel", "gpu_memcpy", "gpu_memset")
RUNTIME = ("cuda_runtime", "cuda_driver")
# torch.profiler computes it from times that it then rounds.
ROUNDED = ("memory_bw_gbps",)


def load(path):
    with gzip.open(path, "rt") if str(path).endswith(".gz") else open(path) as file:
        return json.load(file)


def order(event):
    return (float(event.get("ts", 0)), -float(event.get("dur", 0)), event.get("ph"), str(event.get("cat")), str(event.get("name")),
            event.get("args", {}).get("correlation", 0))


def sorted_file(document, path, complete):
    """Writes the file in order of time; the number of arrows that it lacked."""
    events = document["traceEvents"]
    added = []
    if complete:
        arrows = {(e["ph"], e["id"]) for e in events if e.get("cat") == "ac2g"}
        calls = {e["args"]["correlation"]: e for e in events if e.get("cat") in RUNTIME and "correlation" in e.get("args", {})}
        for event in events:
            number = event.get("args", {}).get("correlation")
            call = calls.get(number)
            if event.get("cat") not in WORK or call is None or call["ts"] > event["ts"]:
                continue
            for phase, at in (("s", call), ("f", event)):
                if (phase, number) not in arrows:
                    arrows.add((phase, number))
                    added.append({"ph": phase, "id": number, "pid": at["pid"], "tid": at["tid"], "ts": at["ts"], "cat": "ac2g", "name": "ac2g"})
    document["traceEvents"] = sorted(events + added, key=order)
    path.write_text(json.dumps(document))
    return len(added)


def told(call):
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return call()
    except Exception as error:  # a table that a tool cannot make of the original, it need not make of the export
        return f"{type(error).__name__}: {error}"


def hta_tables(files):
    sys.path.insert(0, os.environ["HTA"])
    from hta.trace_analysis import TraceAnalysis
    analysis = told(lambda: TraceAnalysis(trace_files={rank: str(path) for rank, path in enumerate(files)}, trace_dir="/"))
    if isinstance(analysis, str):
        return {"file": analysis}
    quiet = {"visualize": False}
    calls = {
        "temporal breakdown": lambda: analysis.get_temporal_breakdown(**quiet),
        "kernel breakdown": lambda: analysis.get_gpu_kernel_breakdown(**quiet),
        "overlap": lambda: analysis.get_comm_comp_overlap(**quiet),
        "idle time": lambda: analysis.get_idle_time_breakdown(show_idle_interval_stats=False, **quiet)[0],
        "launches": lambda: analysis.get_cuda_kernel_launch_stats(**quiet),
        "queue length": lambda: analysis.get_queue_length_summary(),
        "memory bandwidth": lambda: analysis.get_memory_bw_summary(),
        "steps": lambda: analysis.get_profiler_steps(),
        "operators' kernels": lambda: analysis.get_aten_op_kernels_and_delay(),
        "annotations": lambda: analysis.get_gpu_user_annotation_breakdown(**quiet),
        "kernels within annotations": lambda: analysis.get_gpu_kernels_with_user_annotations(rank=0)[["s_name", "ts", "dur", "stream"]],
    }
    return {f"HTA: {name}": told(call) for name, call in calls.items()}


def tracelens_tables(files):
    if "TraceLens" not in sys.modules:  # its __init__ imports what this does not need
        package = types.ModuleType("TraceLens")
        package.__path__ = [os.path.join(os.environ["TRACELENS"], "TraceLens")]
        sys.modules["TraceLens"] = package
    from TraceLens.TreePerf.tree_perf import TreePerfAnalyzer
    tables = {}
    for rank, path in enumerate(files):
        analyzer = told(lambda path=path: TreePerfAnalyzer.from_file(str(path), add_python_func=True))
        if isinstance(analyzer, str):
            tables[f"TraceLens {rank}: file"] = analyzer
            continue
        def launchers(analyzer=analyzer):
            return analyzer.get_df_kernel_launchers()
        calls = {
            "GPU timeline": analyzer.get_df_gpu_timeline,
            "launchers": lambda: launchers()[["name", "total_direct_kernel_time"]],
            "launchers by name": lambda: analyzer.get_df_kernel_launchers_summary(launchers()),
            "launchers by category": lambda: analyzer.get_df_kernel_launchers_summary_by_category(launchers()),
            "kernels": lambda: analyzer.get_df_kernels()[["Kernel name", "Kernel duration (µs)"]],
        }
        tables |= {f"TraceLens {rank}: {name}": told(call) for name, call in calls.items()}
    if len(files) > 1:
        from TraceLens.NcclAnalyser.nccl_analyser import NcclAnalyser
        nccl = told(lambda: NcclAnalyser([str(path) for path in files], len(files)))
        for name in ("build_df_summary_long", "build_df_summary_nccl_implicit_sync_cat", "build_df_straggler_summary"):
            tables[f"TraceLens: NCCL {name}"] = nccl if isinstance(nccl, str) else told(getattr(nccl, name))
    return tables


def rows(table):
    if isinstance(table, pandas.DataFrame):
        flat = table.reset_index()
        flat.columns = [str(one) for one in flat.columns]
        return [dict(zip(flat.columns, row)) for row in flat.itertuples(index=False)]
    if isinstance(table, (tuple, list)):
        return [row for one in table for row in (rows(one) if not isinstance(one, (int, str)) else [{"value": one}])]
    if isinstance(table, dict):
        return [{"key": key} | row for key, one in table.items() for row in rows(one)]
    return [{"value": table}]


def equal(column, one, other):
    if isinstance(one, numbers.Real) and isinstance(other, numbers.Real):
        within = 5e-3 if any(word in column for word in ROUNDED) else 1e-9
        return one == other or (one != one and other != other) or abs(one - other) <= within * max(abs(one), abs(other))
    return str(one) == str(other)


def difference(one, other):
    if isinstance(one, str) or isinstance(other, str):
        return None if str(one) == str(other) else f"{one!s:.200} | {other!s:.200}"
    one, other = rows(one), rows(other)
    if len(one) != len(other):
        return f"{len(one)} rows | {len(other)} rows"
    for at, (mine, its) in enumerate(zip(one, other)):
        wrong = {column: (mine[column], its.get(column)) for column in mine if not equal(column, mine[column], its.get(column))}
        if wrong or mine.keys() != its.keys():
            return f"row {at}: {wrong!s:.400}"
    return None


def compare(tacho, files):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        originals, exports, added = [], [], 0
        for at, path in enumerate(files):
            originals.append(folder / f"original{at}.json")
            exports.append(folder / f"export{at}.json")
            plain = folder / "plain.json"
            added += sorted_file(load(path), originals[-1], True)
            subprocess.run([tacho, "export", "-f", "json", "-o", plain, "--overwrite", path], check=True, capture_output=True)
            sorted_file(load(plain), exports[-1], False)
        found = collections.Counter()
        for tool, tables in (("HTA", hta_tables), ("TRACELENS", tracelens_tables)):
            if not os.environ.get(tool):
                continue
            one, other = tables(originals), tables(exports)
            for name in one:
                wrong = difference(one[name], other.get(name, "absent"))
                if wrong is not None:
                    found["differ"] += 1
                    print(f"  {name} differs: {wrong}")
                elif isinstance(one[name], str):
                    found["refused"] += 1
                    print(f"  {name}: the tool refuses both files: {one[name]:.100}")
                else:
                    found["equal"] += 1
        names = ", ".join(pathlib.Path(path).name for path in files)
        print(f"{names}: {found['equal']} tables equal, {found['differ']} differ, {found['refused']} refused for both"
              + (f"; {added} arrows that the original lacks were added to it" if added else ""))
        return found


def main():
    tacho, files = sys.argv[1], sys.argv[2:]
    ranks = [path for path in files if "rank" in pathlib.Path(path).name]
    groups = [[path] for path in files if path not in ranks] + ([ranks] if ranks else [])
    found = sum((compare(tacho, group) for group in groups), collections.Counter())
    print(f"{found['equal']} passed, {found['differ']} failed")
    sys.exit(1 if found["differ"] or not found["equal"] else 0)


main()
