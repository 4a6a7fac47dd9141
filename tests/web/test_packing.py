from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.web.documents import Document, convolution, decoder, hostile, norms
from topos_web import payloads
from topos_web.packing import pack, unpack

DOCUMENTS = [convolution(observed=True), convolution(observed=False), norms(), decoder(1000), hostile()]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d["target"])
def test_regions_come_back_to_the_letter(document: Document) -> None:
    packed = json.loads(json.dumps(pack(document["regions"])))
    assert unpack(packed) == document["regions"]


def test_repeated_blocks_share_templates() -> None:
    flat, scoped = (pack(decoder(1000, scoped=scoped)["regions"]) for scoped in (False, True))
    assert len(scoped["rows"]) > 75
    assert (len(flat["templates"]), len(scoped["templates"])) == (5, 5)
    assert (len(flat["scope"]), len(scoped["scope"])) == (1, len(scoped["rows"]))


def test_blocks_that_differ_in_where_they_were_built_share_templates() -> None:
    regions = decoder(1000)["regions"]
    for number, region in enumerate(regions):
        region["modules"] = [{"name": f"layer{number}", "path": "model.py", "line": 3}]
    del regions[0]["modules"]
    packed = pack(regions)
    assert len(packed["modules"]) == len(regions) - 1
    assert len(packed["templates"]) == len(pack(decoder(1000)["regions"])["templates"])
    assert unpack(packed) == regions


def test_ids_that_follow_no_rule_are_kept() -> None:
    regions = norms()["regions"]
    regions[0]["id"], regions[0]["key"] = "odd", "odd/key"
    regions[3]["winner"] = "no number"
    regions[3]["contains"] = ["x@007", "y@3", "=z@1"]
    assert unpack(pack(regions)) == regions


def test_the_page_unpacks_alike(tmp_path: Path) -> None:
    """Runs the page's own function, as built, where node is installed."""
    node = shutil.which("node")
    source = Path(__file__).resolve().parents[2] / "web" / "src" / "data" / "packing.ts"
    esbuild = source.parents[2] / "node_modules" / "rolldown"
    if node is None or not esbuild.exists():
        pytest.skip("the package node, or npm ci in web/, is missing")
    script = f"""
    import {{ rolldown }} from {json.dumps(str(esbuild / "dist" / "index.mjs"))};
    import {{ readFileSync }} from 'node:fs';
    const bundle = await rolldown({{ input: {json.dumps(str(source))} }});
    const {{ output }} = await bundle.generate({{ format: 'esm' }});
    const {{ unpack }} = await import('data:text/javascript,' + encodeURIComponent(output[0].code));
    process.stdout.write(JSON.stringify(JSON.parse(readFileSync(0, 'utf8')).map(unpack)));
    """
    file = tmp_path / "unpack.mjs"
    file.write_text(script)
    packed = json.dumps([pack(document["regions"]) for document in DOCUMENTS])
    told = subprocess.run([node, str(file)], input=packed, capture_output=True, text=True, check=True).stdout
    for document, unpacked in zip(DOCUMENTS, json.loads(told), strict=True):
        assert unpacked == [
            {k: v for k, v in region.items() if k != "readers"} | ({"readers": region["readers"]} if "readers" in region else {})
            for region in document["regions"]
        ]  # fmt: skip


@pytest.mark.parametrize(("ops", "most"), [(1000, 4_000), pytest.param(10_000, 21_000, marks=pytest.mark.conformance)])
def test_real_repetition_packs_to_little(ops: int, most: int) -> None:
    document = decoder(ops, scoped=False)
    assert len(payloads.regions(document).packed or b"") < most
