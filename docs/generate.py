"""Writes the pages that are made from code: `docs/codes.md` and `docs/patterns/*.md`; `--check` only compares."""

import re
import sys
from pathlib import Path

from topos_core.document.codes import markdown
from topos_core.matching.catalog import patterns

DOCS = Path(__file__).parent


def pages() -> dict[Path, str]:
    """Gives every made page's text."""
    made = {DOCS / "codes.md": markdown()}
    rows = []
    for name, pattern in patterns().items():
        title, _, body = pattern.documentation.strip().partition("\n")
        made[DOCS / "patterns" / f"{name}.md"] = f"# {name}\n\n{title}\n{headed(body)}\n"
        rows.append(f"| [{name}](patterns/{name}.md) | {title} |")
    made[DOCS / "patterns.md"] = "\n".join(
        [
            "# Patterns",
            "",
            "Made from the docstrings in `topos_core/patterns/`.",
            "",
            "| pattern | what |",
            "|---|---|",
            *rows,
            "",
        ]
    )
    return made


def headed(body: str) -> str:
    """Turns the docstring's headings (a line without indent) into Markdown's, and takes the indent of the rest away."""
    lines = []
    for line in body.rstrip().splitlines():
        if line and not line.startswith(" "):
            line = f"## {line}\n"
        lines.append(re.sub(r"^ {4}", "", line))
    return "\n".join(lines)


def main() -> int:
    """Writes what differs, or with `--check` names it and fails."""
    made = pages()
    left_over = set((DOCS / "patterns").glob("*.md")) - made.keys()
    stale = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv[1:]:
        for path in (*stale, *left_over):
            print(f"{path.relative_to(DOCS.parent)} is not what the code makes; run python docs/generate.py")
        return int(bool(stale or left_over))
    for path in left_over:
        path.unlink()
    for path in stale:
        path.parent.mkdir(exist_ok=True)
        path.write_text(made[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
