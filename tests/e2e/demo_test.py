"""The pages of docs/demo are what scripts/demo.py makes of the recorded data, small, self-contained, and linked from README.md."""
import os
import re
import sys

import harness
from harness import BUILD, DATA, SOURCE

PAGES = ("four-ranks.html", "mi300x-counters.html")
MOST_BYTES = 900_000


class Demo(harness.Case):
    def test_the_pages_are_made_by_the_script(self):
        if harness.sanitized():
            self.skipTest("the pages are made by what is shipped")
        harness.need_data()
        self.run_command(sys.executable, SOURCE / "scripts" / "demo.py", self.folder,
                         env={**os.environ, "TACHO_BUILD": str(BUILD), "TACHO_DATA": str(DATA)})
        self.assertEqual(sorted(os.listdir(self.folder)), sorted(PAGES))
        for name in PAGES:
            made, kept = (self.folder / name).read_bytes(), (SOURCE / "docs" / "demo" / name).read_bytes()
            # Not assertEqual: nobody wants to read the difference.
            self.assertTrue(made == kept, f"docs/demo/{name} is out of date: run scripts/demo.py and commit it")

    def test_they_are_small_and_need_no_other_file(self):
        self.assertEqual(sorted(path.name for path in (SOURCE / "docs" / "demo").iterdir()), sorted(PAGES))
        for name in PAGES:
            page = (SOURCE / "docs" / "demo" / name).read_text()
            self.assertLess(len(page), MOST_BYTES)
            self.assertNotRegex(page, r"""<(script|link|img|iframe)\b[^>]*\b(src|href)=["']?(?!data:)\w""")
            self.assertIn("default-src 'none'", page)

    def test_readme_leads_to_them(self):
        readme = (SOURCE / "README.md").read_text()
        for name in PAGES:
            self.assertRegex(readme, re.escape(f"](docs/demo/{name})"))


if __name__ == "__main__":
    harness.main()
