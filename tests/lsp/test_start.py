import subprocess
import sys

from tests.lsp.client import ROOT

HEAVY = ("numpy", "numba", "torch", "jax", "onnx", "networkx", "fastapi", "psutil")


def test_the_server_starts_without_what_only_traces_need():
    program = (
        f"import topos_lsp.server, sys; topos_lsp.server.Server(); print([m for m in {HEAVY} if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
