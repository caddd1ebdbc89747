"""Compares the summary that AMD's rocpd package makes of tacho's databases with tacho's sums (rocpd.sh)."""
import collections
import json
import subprocess
import sys

import rocpd.summary
from rocpd.importer import RocpdImportData


def query(tacho, path, sql):
    done = subprocess.run([tacho, "query", path, sql, "--output-format", "json"], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["rows"]


def theirs(database):
    """{view: {name: (calls, ns)}} of the package's summary."""
    data = RocpdImportData([database])
    rocpd.summary.create_summary_views(data)
    rocpd.summary.create_summary_region_views(data)
    found = {}
    for view in rocpd.summary.get_temp_view_names(data):
        if view.endswith("_summary"):
            found[view[:-len("_summary")]] = {
                row[0]: (int(row[1]), int(row[2]))
                for row in data.execute(f"SELECT Name, Calls, \"DURATION (nsec)\" FROM `{view}`")}
    return found


def ours(tacho, path, table, name="name"):
    sums = collections.defaultdict(lambda: [0, 0])
    for row in query(tacho, path, f"SELECT {name}, count(*), total(ifnull(duration, 0)) FROM tacho.{table} GROUP BY 1"):
        sums[row[0]][0] += int(row[1])
        sums[row[0]][1] += int(float(row[2]))
    return {key: tuple(value) for key, value in sums.items()}


def main():
    tacho, folder, files = sys.argv[1], sys.argv[2], sys.argv[3:]
    wrong = 0
    for path in files:
        database = folder + "/out.db"
        done = subprocess.run([tacho, "export", path, "-f", "rocpd", "-o", database, "--overwrite"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            print(f"{path}: {done.stderr.decode().strip()}")
            wrong += 1
            continue
        summary = theirs(database)
        found = []
        kernels, copies = ours(tacho, path, "dispatch"), ours(tacho, path, "copy", "1")
        if summary.get("kernels", {}) != kernels:
            found.append(f"kernels: {sorted(summary.get('kernels', {}).items())[:3]}, tacho has "
                         f"{sorted(kernels.items())[:3]}")
        # rocpd has no table for fills; they are copies there.
        for table, view, tables in (("copies and fills", "memory_copies", (copies, ours(tacho, path, "fill", "1"))),
                                    ("markers", "markers", (ours(tacho, path, "marker", "1"),))):
            total = tuple(map(sum, zip((0, 0), *summary.get(view, {}).values())))
            expected = tuple(map(sum, zip((0, 0), *(each for sums in tables for each in sums.values()))))
            if total != expected:
                found.append(f"{table}: {total}, tacho has {expected}")
        # The package makes a view for each word with which categories begin.
        calls = collections.defaultdict(lambda: [0, 0])
        for view, names in summary.items():
            if view in ("kernels", "memory_copies", "memory_allocations", "scratch_memory", "markers"):
                continue
            for name, sums in names.items():
                calls[name][0] += sums[0]
                calls[name][1] += sums[1]
        calls = {name: tuple(sums) for name, sums in calls.items()}
        functions = ours(tacho, path, "api")
        unequal = {name: (calls.get(name), functions.get(name)) for name in {*calls, *functions}
                   if calls.get(name) != functions.get(name)}
        if unequal:
            found.append(f"{len(unequal)} functions (theirs, tacho's): {sorted(unequal.items())[:3]}")
        print(f"{path}: {sum(one[0] for one in kernels.values())} kernels, {sum(one[0] for one in copies.values())} "
              f"copies, {sum(one[0] for one in functions.values())} calls: {'equal' if not found else 'DIFFERENT'}")
        for each in found:
            print(f"  {each}")
        wrong += len(found)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
