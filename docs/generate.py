"""Writes the pages that are made from code: `docs/codes.md`, `docs/kernels.md`, `docs/patterns/*.md`; `--check` only compares."""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from topos_core.document.codes import markdown
from topos_core.document.schema import SCHEMA
from topos_core.kernels.envelope_table import PROBE
from topos_core.kernels.home.manifest import Home
from topos_core.kernels.home.manifest import patterns as kernels
from topos_core.kernels.kernel import Decline
from topos_core.kernels.probes import matched
from topos_core.matching.catalog import patterns
from topos_core.plan.request import Request

Schema = Mapping[str, Any]
DOCS = Path(__file__).parent
ROOT = DOCS.parent
DTYPES = ("f32", "f64", "f16", "bf16", "i32", "u8")


def pages() -> dict[Path, str]:
    """Gives every made page's text."""
    made = {DOCS / "codes.md": markdown(), DOCS / "kernels.md": kernels_page()}
    made[ROOT / "topos_core/document/plan.schema.json"] = json.dumps(SCHEMA, indent=1) + "\n"
    made[ROOT / "web/src/data/plan.ts"] = plan_types()
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


def plan_types() -> str:
    """Writes the definitions of the plan document's schema as TypeScript."""
    head = "/** What plan documents hold. Made from topos_core/document/schema.py by docs/generate.py. */\n"
    return "\n".join([head, *(declared(name, schema) for name, schema in SCHEMA["$defs"].items())])


def declared(name: str, schema: Schema) -> str:
    """Declares one definition: an interface where it is an object, else a type."""
    told = f"/** {schema['description']} */\n" if "description" in schema else ""
    if "properties" not in schema:
        return f"{told}export type {name} = {type_of(schema)};\n"
    bases = [base["$ref"].rpartition("/")[2] for base in schema.get("allOf", ())]
    extends = f" extends {', '.join(bases)}" if bases else ""
    return f"{told}export interface {name}{extends} {fields(schema, '')}\n"


def fields(schema: Schema, indent: str) -> str:
    """Writes an object's fields; those that it need not have are optional."""
    lines = ["{"]
    for name, field in schema["properties"].items():
        if "description" in field:
            lines.append(f"{indent}  /** {field['description']} */")
        optional = "" if name in schema["required"] else "?"
        lines.append(f"{indent}  {name}{optional}: {type_of(field, indent + '  ')};")
    return "\n".join([*lines, f"{indent}}}"])


def type_of(schema: Schema, indent: str = "") -> str:
    """Writes the type of what a schema describes."""
    match schema:
        case {"tsType": written}:
            return str(written)
        case {"$ref": name} | {"allOf": [{"$ref": name}]}:
            return str(name).rpartition("/")[2]
        case {"enum": names}:
            return " | ".join(f"'{name}'" for name in names)
        case {"anyOf": choices}:
            return " | ".join(type_of(choice, indent) for choice in choices)
        case {"prefixItems": items}:
            return f"[{', '.join(type_of(item, indent) for item in items)}]"
        case {"type": "array", "items": items}:
            inner = type_of(items, indent)
            return f"({inner})[]" if "|" in inner else f"{inner}[]"
        case {"properties": _}:
            return fields(schema, indent)
        case {"additionalProperties": values}:
            return f"Record<string, {type_of(values, indent)}>"
        case {"type": "integer" | "number"}:
            return "number"
        case {"type": "string" | "boolean" | "null" as name}:
            return str(name)
    raise AssertionError(f"no TypeScript for {schema}")


def kernels_page() -> str:
    """Tabulates what home offers for every pattern at every dtype."""
    rows = [
        f"| [{name}](patterns/{name}.md) | {' | '.join(answer(name, dtype) for dtype in DTYPES)} |"
        for name in sorted(kernels())
    ]
    return "\n".join(
        [
            "# Kernels of home, by dtype",
            "",
            "Made from the offers for the patterns' own examples at other dtypes. A number is the shipped error of the kernel: the",
            "largest difference from float64, relative to the largest magnitude of the output, that was measured on the probe set,",
            f"doubled ({PROBE}).",
            "What that covers, and what it cannot, stands under *What an envelope covers* in [numerics.md](numerics.md).",
            "f16 and bf16 are read and written as they are and computed in f32. *recorded bits*: the kernel rounds as the recorded",
            "ops do; where examples differ (a maximum and a mean of windows), both stand there. *TP206*: recognised, and declined with",
            "its reason (never measured at this dtype, or computed in floats only); the recorded ops run. An empty cell: the examples do not match at this dtype.",
            "",
            f"| pattern | {' | '.join(DTYPES)} |",
            f"|---|{'---|' * len(DTYPES)}",
            *rows,
            "",
        ]
    )


def answer(pattern: str, dtype: str) -> str:
    """Says what home offers for the examples of a pattern that match at a dtype: the same for all of them but for few."""
    answers = []
    for example in patterns()[pattern].examples:
        found = matched(pattern, dtype, (example.function, example.specs))
        if found is None:
            continue
        offer = Home().offer(*found, Request())
        if isinstance(offer, Decline):
            answers.append(offer.code)
        elif offer.exact or offer.envelope is None:
            answers.append("recorded bits")
        else:
            answers.append(f"{offer.envelope.relative:.1e}")
    return " or ".join(sorted(set(answers), key=lambda told: (told != "recorded bits", told)))


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
