"""The AMD test bed itself: AMD's real HIP and HSA on the imitated kernel driver give right results and exact counts."""
import bed
import harness


class TheBed(bed.Case):
    def check(self, rounds, **where):
        program = self.program("mixed")
        result, ledger = self.on_bed(program, rounds, **where)
        said = bed.printed(result)
        self.assertEqual(said["wrong"], "0")
        self.assertEqual(ledger.unknown, [])
        self.assertEqual(len(ledger.kernels), int(said["kernels"]))
        self.assertEqual(ledger.names(), {"scale": 1, "add": rounds, "_Z7reversePfi": 5 * rounds + 12})
        self.assertEqual([copy.bytes for copy in ledger.copies], [int(said["copied"]) // 2] * 2)
        return said, ledger

    def test_each_architecture(self):
        for gpu in ("gfx90a", "gfx942", "gfx950"):
            with self.subTest(gpu):
                said, _ = self.check(3, gpu=gpu)
                self.assertEqual(said["architecture"].split(":")[0], gpu)

    def test_several_gpus(self):
        said, ledger = self.check(2, gpus=4)
        self.assertEqual(said["devices"], "4")
        self.assertEqual({kernel.gpu for kernel in ledger.kernels}, {0})

    def test_what_a_packet_says(self):
        _, ledger = self.check(30)
        add = next(kernel for kernel in ledger.kernels if kernel.name == "add")
        self.assertEqual((add.grid, add.group, add.lds, add.scratch, add.how), ((1 << 18, 1, 1), (256, 1, 1), 0, 0, "host"))
        dynamic = [kernel.lds for kernel in ledger.kernels if kernel.name.startswith("_Z7reverse")]
        self.assertEqual((dynamic.count(1024), dynamic.count(1536)), (132, 30))
        for kernel in ledger.kernels:
            self.assertLess(kernel.start, kernel.end)
        self.assertGreater(len({kernel.queue for kernel in ledger.kernels}), 1)

    def test_an_old_driver_is_refused(self):
        result, ledger = self.on_bed(self.program("mixed"), code=None, env={"TACHO_KFD_VERSION": "0.9"})
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(ledger.kernels, [])


if __name__ == "__main__":
    harness.main()
