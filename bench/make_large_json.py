#!/usr/bin/env python3
"""Makes a large Kineto JSON file out of a small one: its events COPIES times, shifted in time. Standard library only.

    make_large_json.py IN.json[.gz] OUT.json [COPIES]
"""
import gzip
import json
import sys


def main():
    source, target = sys.argv[1], sys.argv[2]
    copies = int(sys.argv[3]) if len(sys.argv) > 3 else 40
    opened = gzip.open(source, "rb") if source.endswith(".gz") else open(source, "rb")
    with opened as file:
        document = json.load(file)
    events = document.pop("traceEvents")
    times = [event["ts"] for event in events if "ts" in event]
    step = max(times) - min(times) + 1000
    with open(target, "w", encoding="utf-8") as out:
        head = json.dumps(document, indent=2)
        out.write(head[:head.rindex("}")].rstrip() + ',\n  "traceEvents": [\n')
        for copy in range(copies):
            for number, event in enumerate(events):
                if "ts" not in event and copy > 0:
                    continue  # names of processes and threads: once
                shifted = dict(event)
                if "ts" in event:
                    shifted["ts"] = round(event["ts"] + copy * step, 3)
                if copy or number:
                    out.write(",\n")
                # The layout of torch.profiler's own files.
                out.write("  " + json.dumps(shifted, indent=2).replace("\n", "\n  "))
        out.write("\n  ]\n}\n")


if __name__ == "__main__":
    main()
