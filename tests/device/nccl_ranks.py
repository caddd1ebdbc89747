#!/usr/bin/env python3
"""`tacho ranks` on real ranks: DDP and FSDP over NCCL on this host's GPUs, against torch.profiler's counts, the gradients' bytes and
delays that were planted. Run by nccl_ranks.sh; prints a table of verdicts.

usage: nccl_ranks.py [--build DIR] [--out DIR]
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TABLE = []


def check(what, ok, measured="", goal=""):
    TABLE.append((what, "ok" if ok else "FAILED", str(measured), goal))
    print(f"  {what}: {measured}{'  goal ' + goal if goal else ''}  {'ok' if ok else 'FAILED'}", flush=True)


def run(*command, **more):
    result = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=240, **more)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} exited with {result.returncode}: {result.stderr[-1500:]}")
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=str(HERE.parents[1] / "build"))
    parser.add_argument("--out", default=".")
    options = parser.parse_args()
    tacho = pathlib.Path(options.build).resolve() / "bin" / "tacho"
    gpus = len(run("nvidia-smi", "-L").stdout.splitlines())
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(gpus), "--master-port", "29555"]
    train = HERE / "nccl_train.py"
    work = pathlib.Path(tempfile.mkdtemp(prefix="nccl-ranks-"))
    for kind in ("ddp", "fsdp"):
        print(f"{kind}:", flush=True)
        folder = work / kind
        folder.mkdir()
        said = run(*torchrun, "--no-python", tacho, "trace", "-q", "-o", folder / "rank%rank%.tacho", "--", sys.executable, train, kind).stdout
        gradients = int(said.split("gradients ")[1].split()[0])
        print(" ", said.strip().splitlines()[-1])
        answer = json.loads(run(tacho, "ranks", folder, "--output-format", "json").stdout)
        print(run(tacho, "ranks", folder).stdout, flush=True)
        (pathlib.Path(options.out) / f"ranks_{kind}.json").write_text(json.dumps(answer))
        check(f"{kind}: every rank is there", len(answer["ranks"]) == gpus and not answer["missing_ranks"], len(answer["ranks"]), str(gpus))
        counts = [rank["collectives"] for rank in answer["ranks"]]
        check(f"{kind}: collectives of every rank", len(set(counts)) == 1 and counts[0] > 0, counts)
        profile = work / f"{kind}.json"
        run(*torchrun, train, kind, "--profile", profile)
        expected = sum(json.loads(profile.read_text()).values())
        text = run(tacho, "query", sorted(folder.rglob("*.tacho"))[0], "--dialect", "tacho", "--output-format", "csv",
                   "SELECT count(*) FROM dispatch d JOIN kernel k ON d.dim = k.id WHERE k.name LIKE '%ncclDevKernel%' OR k.name LIKE '%ncclSym%'").stdout
        total = int(text.split()[-1])
        # torch.profiler saw the steps after the warm-up; the rest are the warm-up's and the barriers'.
        check(f"{kind}: kernels of NCCL", total == counts[0] and total > expected, f"{total} in all, torch.profiler {expected} in 12 steps")
        sizes = [c for c in answer["collectives"] if c["message_bytes"] > 0]
        check(f"{kind}: collectives with a size", len(sizes) >= expected, f"{len(sizes)} of {len(answer['collectives'])}")
        groups = {c["group"] for c in sizes}
        check(f"{kind}: one communicator, named", len(groups) == 1 and "" not in groups, groups)
        moved = "all_reduce" if kind == "ddp" else "reduce_scatter"
        of_step = {}
        for c in sizes:
            if c["operation"] == moved:
                of_step[c["step"]] = of_step.get(c["step"], 0) + c["message_bytes"]
        middle = sorted(of_step.values())[len(of_step) // 2] if of_step else 0
        check(f"{kind}: bytes of {moved} in a step", abs(middle - gradients) <= 0.02 * gradients, middle, f"{gradients} of gradients")
        by_waiting = sorted(answer["steps"], key=lambda step: -step["late_ns"])
        # Three steps of warm-up carry the same range, "step -1": the steps before the last twelve.
        first = answer["steps"][-1]["step"] - 11
        timed = [step for step in by_waiting if step["step"] >= first]
        for planted, cause in ((6, "more kernels"), (9, "host")):
            step = next((step for step in timed[:2] if step["step"] == first + planted), {})
            said = (step.get("cause") or {}).get("text", "")
            check(f"{kind}: step {planted} is one of the two that waited most, for rank 1", step.get("last_rank") == 1 and cause in said,
                  f"rank {step.get('last_rank')}, {step.get('late_ns', 0) / 1e6:.2f} ms: {said}", cause)
        for row in answer["kinds"]:
            print(f"    {row['operation']} {row['message_bytes']} B: {row['count']} times, {row['bus_gb_s']} GB/s on the bus")
    # One trace of all ranks.
    run(tacho, "trace", "-q", "-o", work / "all.tacho", "--", *torchrun, train, "ddp")
    answer = json.loads(run(tacho, "ranks", work / "all.tacho", "--output-format", "json").stdout)
    check("one trace of torchrun: the ranks", len(answer["ranks"]) == gpus, len(answer["ranks"]), str(gpus))
    shutil.rmtree(work)
    print("\nverdicts")
    widths = [max(len(row[i]) for row in TABLE) for i in range(4)]
    for row in TABLE:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)))
    failed = sum(row[1] != "ok" for row in TABLE)
    print(f"{len(TABLE)} lines, {failed} failed")
    sys.exit(1 if failed else 0)


main()
