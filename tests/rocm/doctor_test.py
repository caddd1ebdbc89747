"""tacho doctor on AMD machines that the bed makes: their parts, the missing ones, and the command that mends each."""
import os
import pathlib
import re

import bed
import harness
from harness import TACHO


class Doctor(bed.Case):
    def checks(self, **where):
        """{subject: (state, finding, command)} of `tacho doctor --report`."""
        (self.folder / "report").unlink(missing_ok=True)
        self.on_bed(TACHO, "doctor", "--report", "report", code=None, **where)
        found, last = {}, None
        for line in (self.folder / "report").read_text().splitlines():
            check = re.match(r"  (ok|note|FAULT) +(.+?)(?:  +(.*))?$", line)
            if check:
                state, last, text = check.groups()
                found[last] = [state, text or "", ""]
            elif last and line.strip().startswith("→"):
                found[last][2] = line.strip()[2:]
            elif last and line.startswith(" " * 20) and not found[last][1]:
                found[last][1] = line.strip()
            elif not line.startswith(" "):
                last = None
        return found

    @staticmethod
    def in_container():
        return any(word in pathlib.Path("/proc/1/cgroup").read_text() for word in ("docker", "kubepods", "containerd", "lxc")) or \
            "KUBERNETES_SERVICE_HOST" in os.environ

    def test_a_machine_that_is_well(self):
        for rocm in self.versions():
            with self.subTest(rocm):
                checks = self.checks(gpus=2, rocm=rocm)
                self.assertEqual(checks["AMD kernel module"][:2], ["ok", "2 x AMD gfx942 (8 XCDs each)"])
                self.assertEqual(checks["/dev/kfd"][:2], ["ok", "this user may open it"])
                self.assertEqual(checks["ROCm"][0], "ok")
                self.assertRegex(checks["ROCm"][1], rf"the distribution's: /.*/libamdhip64\.so\.{rocm[0]}\.{rocm[2]}\.")
                self.assertRegex(checks["rocprofiler-sdk"][1], "HSA's interface for tools")
                self.assertNotIn("/dev/dri", checks)
                self.assertNotIn("any device", checks)

    def test_partitions(self):
        self.assertEqual(self.checks(gpu="gfx942-cpx")["AMD kernel module"][1], "8 x AMD gfx942 (partitions of 1 card)")

    def test_no_permission(self):
        for where, command in (("", "usermod -aG render,video"), ("docker", "docker run --group-add video --group-add render")):
            with self.subTest(where):
                state, text, mend = self.checks(env={"TACHO_KFD_FAULT": "permission", "container": where})["/dev/kfd"]
                self.assertEqual(state, "FAULT")
                self.assertIn("render and video", text)
                if where or not self.in_container():
                    self.assertIn(command, mend)

    def test_a_container_without_devices(self):
        state, _, mend = self.checks(env={"TACHO_KFD_FAULT": "absent", "container": "docker"})["/dev/kfd"]
        self.assertEqual(state, "FAULT")
        self.assertIn("docker run --device /dev/kfd --device /dev/dri", mend)

    def test_no_gpu(self):
        self.assertEqual(self.checks(gpus=0)["AMD"][:2], ["note", "no AMD GPU in this machine"])

    def test_devices_that_avail_lists(self):
        result, _ = self.on_bed(TACHO, "avail", gpus=2)
        rows = [line for line in result.stdout.decode().splitlines() if re.match(r"\s*\S*\s*HIP\s", line) or " gfx942 " in line]
        self.assertGreaterEqual(len(rows), 2, result.stdout.decode())


if __name__ == "__main__":
    harness.main()
