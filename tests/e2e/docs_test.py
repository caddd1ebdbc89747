"""The pages of docs/: every command has one, links lead somewhere, man pages can be made."""
import re

import harness
from harness import SOURCE, TACHO

DOCS = SOURCE / "docs"


class Docs(harness.Case):
    def commands(self):
        text = self.run_command(TACHO, "--help").stdout.decode()
        return re.findall(r"^  ([a-z]+) {2,}", text, re.M)

    def test_every_command_has_a_page(self):
        titles = " ".join(page.read_text().split("\n", 1)[0] for page in (DOCS / "commands").glob("*.md"))
        commands = self.commands()
        self.assertGreater(len(commands), 15)
        for command in commands:
            self.assertRegex(titles, rf"tacho {command}\b")

    def test_links_lead_somewhere(self):
        for page in [*DOCS.rglob("*.md"), SOURCE / "README.md", SOURCE / "CONTRIBUTING.md"]:
            text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
            for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
                if not target.startswith("http"):
                    self.assertTrue((page.parent / target).exists(), f"{page}: {target}")

    def test_index_names_every_page(self):
        index = (DOCS / "README.md").read_text()
        for page in DOCS.rglob("*.md"):
            name = page.relative_to(DOCS).as_posix()
            if name != "README.md":
                self.assertIn(f"({name})", index)

    def test_man_pages(self):
        self.run_command(SOURCE / "scripts" / "man_pages.py", self.folder / "man", "1.2.3")
        for command in self.commands():
            page = (self.folder / "man" / f"tacho-{command}.1").read_text()
            self.assertRegex(page, r"\.TH|^\.so man1/tacho-[a-z]+\.1$")


if __name__ == "__main__":
    harness.main()
