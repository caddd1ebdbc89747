"""The sums of tacho ranks, computed from torch.profiler's JSON by other means: intervals as lists, nothing streamed."""
import gzip
import json


def union(intervals):
    total, until = 0, None
    for start, end in sorted(intervals):
        if until is None or start > until:
            total, until = total + end - start, end
        elif end > until:
            total, until = total + end - until, end
    return total


def sums(path):
    events = json.load(gzip.open(path) if str(path).endswith(".gz") else open(path))["traceEvents"]
    spans = {"kernel": [], "nccl": [], "copy": []}
    for e in events:
        kind = {"kernel": "nccl" if "nccl" in e["name"] else "kernel", "gpu_memcpy": "copy", "gpu_memset": "copy"}.get(e.get("cat"))
        if kind and e["ph"] == "X":
            spans[kind].append((round(e["ts"] * 1000), round(e["ts"] * 1000) + round(e["dur"] * 1000)))
    everything = spans["kernel"] + spans["nccl"] + spans["copy"]
    compute, both, busy = union(spans["kernel"]), union(spans["kernel"] + spans["nccl"]), union(everything)
    return {"span_ns": max(e for _, e in everything) - min(s for s, _ in everything), "busy_ns": busy, "compute_ns": compute,
            "communication_ns": union(spans["nccl"]), "exposed_communication_ns": both - compute, "copies_ns": union(spans["copy"]),
            "exposed_copies_ns": busy - both, "arrivals": sorted(spans["nccl"])}


def waiting(ranks):
    """[(last rank, spread, waited, transfer)] of the collectives of ranks that all take part in all, by sums() of each."""
    found = []
    for arrivals in zip(*(rank["arrivals"] for rank in ranks)):
        starts, last = [s for s, _ in arrivals], max(s for s, _ in arrivals)
        found.append((starts.index(last), last - min(starts), sum(last - s for s in starts), max(e for _, e in arrivals) - last))
    return found
