"""The bench of truth on the virtual GPU: for each rule a kernel that has its fault and one that has not. The rule finds the
first and not the second, speaks up nowhere else, and the mend gains what the finding promised. docs/metrics.md has the table."""
import json
import os
import unittest

from harness import BUILD, SOURCE, TACHO, TARGETS, Case, main

PATTERNS = TARGETS / "opencl_patterns"
PLUGIN = BUILD / "lib" / "libtacho-oclgrind.so"
ICD = "/usr/lib/oclgrind/liboclgrind-rt-icd.so"

# rule: kernel with the fault, mended kernel, the count that shrinks
BENCH = {
    "divergence": ("divergence_fault", "divergence_mended", "wave-instructions"),
    "uncoalesced-loads": ("strided", "copy", "global-load-sectors"),
    "uncoalesced-stores": ("stores_fault", "copy", "global-store-sectors"),
    "redundant-loads": ("redundant_fault", "redundant_mended", "global-load-lines"),
    "broadcast-loads": ("uniform_fault", "uniform_mended", "vmem-global-reads"),
    "lds-bank-conflicts": ("conflict32", "padded", "lds-index-accesses"),
    "private-arrays": ("private_fault", "private_mended", "insts-private"),
    "wide-integer-arithmetic": ("wide_fault", "wide_mended", "valu-int64-insts"),
    "atomic-contention": ("atomics_fault", "atomics_mended", "global-atomic-conflicts"),
    "scattered-constants": ("constants_fault", "constants_mended", "insts-constant"),
    "unfused-multiply-add": ("unfused_fault", "unfused_mended", "insts-fp-mul"),
    "divisions": ("divisions_fault", "divisions_mended", "insts-fp-div"),
    "stray-double-precision": ("double_fault", "double_mended", "f64-ops"),
    # Workgroups of 48 and of 32 work-items, in runs of their own.
    "partial-wavefront": ("copy/48", "copy/32", "total-wavefronts"),
}
# Additional faults of a kernel: one work-item adds up the others' results.
ALSO = {"atomics_mended": {"divergence"}}
# Where a rule is wrong, and known to be: (x + 1) * y has a multiplication and an addition that cannot be fused.
WRONG = {"unfused-multiply-add": ["divisions_mended"]}


@unittest.skipUnless(PLUGIN.exists() and os.path.exists(ICD), "this build has no Oclgrind plugin, or Oclgrind is not installed")
class Truth(Case):
    def profile(self, name, *command):
        self.run_command(TACHO, "profile", "-n", name, "--device", "virtual", "-q", "--", PATTERNS, *command)
        document = json.loads(self.run_command(TACHO, "analyze", "-p", self.folder / "workloads" / name / "virtual", "--per-kernel",
                                               "--output-format", "json").stdout)
        suffix = f"/{command[2]}" if len(command) > 2 and command[2] != "64" else ""
        for kernel in document["kernels"]:
            self.counts[kernel["name"] + suffix] = {
                row["slug"]: row["cells"][1] for table in kernel["tables"] for row in table["rows"] if "slug" in row}
            self.found.setdefault(kernel["name"] + suffix, {})
        for finding in document["findings"]:
            self.found[finding["kernel"] + suffix][finding["slug"]] = finding
        self.assertEqual(document["shares_of"], "instructions issued")
        self.assertEqual(document["implausible"], [])

    def setUp(self):
        super().setUp()
        self.counts, self.found = {}, {}

    def test_every_rule(self):
        listed = sorted({kernel for fault, mended, _ in BENCH.values() for kernel in (fault, mended) if "/" not in kernel})
        # At most ten kernels of a run are judged.
        for at in range(0, len(listed), 8):
            self.profile(f"part{at}", ",".join(listed[at:at + 8]), "1024", "64")
        self.profile("w48", "copy", "480", "48")
        self.profile("w32", "copy", "480", "32")
        rows = []
        for rule, (fault, mended, count) in sorted(BENCH.items()):
            with self.subTest(rule=rule):
                self.assertIn(rule, self.found[fault], self.counts[fault])
                finding = self.found[fault][rule]
                self.assertNotIn(rule, self.found[mended])
                before, after = self.counts[fault][count], self.counts[mended][count]
                saved = 100 * (before - after) / before
                promised = finding["saves"]
                if not finding["possible"]:
                    self.assertGreaterEqual(saved, promised["low"] - 1e-9, (before, after))
                self.assertLessEqual(saved, promised["high"] + 1e-9, (before, after))
                self.assertGreater(saved, 0)
                elsewhere = [kernel for kernel, found in self.found.items()
                             if rule in found and kernel != fault and rule not in ALSO.get(kernel, ())]
                self.assertEqual(elsewhere, WRONG.get(rule, []))
                rows.append(f"| {rule} | virtual | {'possible' if finding['possible'] else 'found'} | silent, {saved:.0f} % saved | "
                            f"{len(elsewhere)} of {len(self.found) - 1} |")
        documented = [line for line in (SOURCE / "docs" / "metrics.md").read_text().splitlines() if "| virtual |" in line]
        self.assertEqual(documented, rows, "docs/metrics.md must have these rows:\n" + "\n".join(rows))


if __name__ == "__main__":
    main()
