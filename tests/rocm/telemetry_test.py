"""Telemetry through AMD's own management libraries, AMD SMI and ROCm SMI, over the sensors that the bed shows under /sys
(tests/rocm/kfd/topology.py): the values are those, for each GPU."""
import bed
import harness
from harness import TACHO

GIB = 1 << 30


class Telemetry(bed.Traced):
    def readings(self, env, rocm="7.2"):
        (self.folder / "t.tacho").unlink(missing_ok=True)
        self.on_bed(TACHO, "sys", "sample", "-o", "t.tacho", "--", "/bin/sleep", "0.6", gpus=2, rocm=rocm, env=env)
        rows = self.query("SELECT t.name, min(r.value), max(r.value), count(*) FROM reading r JOIN track t ON t.id = r.track "
                          "WHERE t.name LIKE 'GPU %' GROUP BY 1")
        for name, least, most, count in rows:
            self.assertEqual(least, most, name)
            self.assertGreater(count, 1, name)
        self.assertEqual(self.notes(), [])
        return {name: value for name, value, _, _ in rows}

    def both(self, **values):
        return {f"GPU {name.replace('_', ' ')} [{gpu}]": value(gpu) for name, value in values.items() for gpu in (0, 1)}

    COMMON = {"GFX_Busy": lambda gpu: 30 + gpu, "UMC_Busy": lambda gpu: 20 + gpu, "Temperature": lambda gpu: 50 + gpu,
              "Memory_Usage": lambda gpu: (3 + gpu) * GIB, "Core_Clock": lambda gpu: 1700, "Memory_Clock": lambda gpu: 1300}

    def test_amd_smi(self):
        """Found under the name that the distribution's package gives it."""
        values = self.readings({"TACHO_ROCM_SMI": ""})
        self.assertEqual(values, {**values, **self.both(**self.COMMON, MM_Busy=lambda gpu: 10 + gpu)})
        self.assertIn("GPU Energy [1]", values)

    def test_rocm_smi(self):
        for rocm in self.versions():
            with self.subTest(rocm):
                values = self.readings({"TACHO_AMD_SMI": ""}, rocm=rocm)
                self.assertEqual(values, {**values, **self.both(**self.COMMON, Current_Power=lambda gpu: 100 + gpu)})


if __name__ == "__main__":
    harness.main()
