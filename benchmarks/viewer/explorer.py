"""Times Model Explorer (PyPI ai-edge-model-explorer) on the same graph."""

from __future__ import annotations

import json
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.viewer.browser import chromium
from tests.web.documents import Document


def model_explorer(command: str, document: Document) -> float:
    """Times the collapsed first view of the same graph in Model Explorer, in seconds."""
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
        probe.close()
        path = Path(folder) / "graph.json"
        path.write_text(json.dumps(explorer_graph(document)))
        arguments = [
            command,
            str(path),
            "--no_open_in_browser",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--skip_health_check",
        ]
        server = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert server.stdout is not None
        try:
            url = next(line.split()[-1] for line in server.stdout if "http://" in line)
            with chromium() as browser:
                page = browser.new_page(viewport={"width": 1440, "height": 900})
                page.set_default_timeout(120_000)
                begun = time.perf_counter()
                page.goto(url)
                page.locator("canvas").first.wait_for()
                page.get_by_text("Processing").first.wait_for(state="detached")
                return time.perf_counter() - begun
        finally:
            server.terminate()
            server.wait()


def explorer_graph(document: Document) -> list[dict[str, Any]]:
    """Writes ops as Model Explorer's JSON nodes."""
    ops = document["ops"]
    nodes = [
        {
            "id": str(i),
            "label": document["names"][name],
            "namespace": "/".join(document["scopes"][document["locations"][location][0]]),
            "incomingEdges": [{"sourceNodeId": str(o), "sourceNodeOutputId": "0", "targetNodeInputId": str(k)} for k, o in enumerate(operands)],
        }
        for i, (name, location, operands) in enumerate(zip(ops["name"], ops["location"], ops["operands"], strict=True))
    ]  # fmt: skip
    return [{"id": "main", "nodes": nodes}]
