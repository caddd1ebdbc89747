"""Recording switched on and off by launches and markers: on the right side of each, in OpenCL and marker programs."""
import harness

STORM = harness.EXAMPLES / "many_kernels"


class Launches(harness.Case):
    def dispatches(self, *options):
        self.trace(STORM, "-n", "100", "-k", "1", options=[*options, "--overwrite"])
        return sum(row["Calls"] for row in self.stats("kernel").values())

    def test_from_and_until_a_launch(self):
        everything = self.dispatches()
        self.assertGreaterEqual(everything, 100)
        self.assertEqual(self.dispatches("--start-trigger", "launch:1"), everything)
        self.assertEqual(self.dispatches("--start-trigger", "launch:31"), everything - 30)
        self.assertEqual(self.dispatches("--stop-trigger", "launch:31"), 30)
        self.assertEqual(self.dispatches("--start-trigger", "launch:11", "--stop-trigger", "launch:31"), 20)


class Markers(harness.Case):
    def test_from_a_marker(self):
        self.trace(harness.TARGETS / "lifecycle", "sleep", "0", options=["--start-trigger", "marker:after"])
        self.assertEqual(self.calls("marker", "before"), 0)
        self.assertGreaterEqual(self.calls("marker", "after"), 2)

    def test_until_a_marker(self):
        self.trace(harness.TARGETS / "lifecycle", "sleep", "0", options=["--stop-trigger", "marker:after"])
        self.assertEqual(self.calls("marker", "before"), 3)
        self.assertLessEqual(self.calls("marker", "after"), 1)


if __name__ == "__main__":
    harness.main()
