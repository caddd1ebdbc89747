"""Adds up the attacks' reports: how many cases ran, how they ended, which took long. Fails when one failed or when there
are fewer than there should be."""
import json
import pathlib
import sys

import attack

LEAST = 240


def main():
    tests = {path.stem.removesuffix("_test") for path in pathlib.Path(__file__).parent.glob("*_test.py")}
    ended, times, missing = {}, [], []
    for name in sorted(tests):
        file = attack.REPORTS / f"{name}.json"
        if not file.exists():
            missing.append(name)
            continue
        cases = json.loads(file.read_text())
        for case, (outcome, seconds) in cases.items():
            ended.setdefault(outcome.split(":")[0], []).append(f"{name}: {case}")
            times.append((seconds, f"{name}: {case}"))
        print(f"{name:16} {len(cases):4} cases {sum(seconds for _, seconds in cases.values()):7.1f} s")
    total = sum(map(len, ended.values()))
    print(f"{total} cases, " + ", ".join(f"{len(cases)} {outcome}" for outcome, cases in sorted(ended.items())))
    for seconds, case in sorted(times, reverse=True)[:8]:
        print(f"  {seconds:6.1f} s  {case}")
    for case in ended.get("failed", []):
        print(f"failed: {case}")
    if missing:
        print(f"no report of {', '.join(missing)}")
    if total < LEAST:
        print(f"fewer than {LEAST} cases")
    return bool(ended.get("failed") or missing or total < LEAST)


if __name__ == "__main__":
    sys.exit(main())
