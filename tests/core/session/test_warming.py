import sys
import threading
import time

import pytest

from topos_core.session.client import Agent, Cancelled
from topos_core.session.messages import MessageError, check_reply
from topos_core.session.warming import Warming, imported

MARK = "import topos_core as tp\n@tp.model(x=tp.f32[2])\ndef f(x):\n    return x + 1\n"
SOFTMAX = """import numpy as np
@tp.model(x=tp.f32[4, 8])
def f(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
"""
# A package of a framework's name that tells which process imported it, and that fails in one module.
PACKAGE = {
    "timm/__init__.py": "import os\nwith open(os.environ['TOLD'], 'a') as file:\n    file.write(f'{os.getpid()}\\n')\n",
    "timm/good.py": "",
    "timm/bad.py": "import sys\nif 'topos_loaded_here' not in sys.modules:\n    raise SystemExit(3)\n",
}


def test_only_modules_of_frameworks_and_ours_are_named_and_taken(monkeypatch):
    for name in ("os", "timm.named", "numpy", "topos_core.named", "numba"):
        monkeypatch.setitem(sys.modules, name, sys)
    assert "timm.named" in imported()
    assert not {"timm.named", "numpy"} & set(imported(before=frozenset(sys.modules)))
    assert not {"os", "topos_core.named"} & set(imported())  # no fork would survive numba's threads
    monkeypatch.delitem(sys.modules, "numba")
    assert "topos_core.named" in imported()
    warming = Warming()
    warming.add(["numpy", "numpy.other", "os", "evil", "torchvision_like", 7, "timm.models", "topos_core.named"])
    assert list(warming.pending) == ["numpy.other", "timm.models"]


def test_what_a_plan_imports_late_is_there_for_the_next(tmp_path):
    text = "import sys\nprint('topos_core.kernels.home.softmax' in sys.modules)\nimport topos_core as tp\n" + SOFTMAX
    with Agent(tmp_path, warming=True) as agent:
        assert agent.trace("m.py", text)["output"] == "False\n"
        _until(lambda: agent.trace("m.py", text)["output"] == "True\n")


def test_a_module_that_cannot_be_imported_is_passed_over():
    warming = Warming()
    warming.add(["timm.no_such_module", "flax"])
    while warming.pending:
        warming.step()
    assert "timm.no_such_module" not in sys.modules


def test_frameworks_are_imported_once_in_the_warm_process_and_found_by_later_traces(tmp_path, monkeypatch):
    site, root = tmp_path / "site", tmp_path / "root"
    for name, text in PACKAGE.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    root.mkdir()
    told = tmp_path / "told"
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.setenv("TOLD", str(told))
    text = f"import sys\nsys.modules['topos_loaded_here'] = sys\nimport timm.good, timm.bad\n{MARK}"
    with Agent(root, warming=True) as agent:
        warm = str(agent.hello()["process"])
        first = agent.trace("m.py", text)
        assert "error" not in first
        assert "modules" not in first
        for number in range(100):
            agent.trace("m.py", f"{text}# {number}\n")
            if warm in told.read_text().split():
                break
        known = len(told.read_text().split())
        for number in range(3):
            assert "error" not in agent.trace("m.py", f"{text}# more {number}\n")
        assert len(told.read_text().split()) == known


def test_names_that_are_no_texts_are_refused():
    with pytest.raises(MessageError, match="modules"):
        check_reply("trace", {"entries": [], "modules": [3]})


def test_a_cancelled_trace_ends_while_the_warm_process_imports(tmp_path, monkeypatch):
    site, root = tmp_path / "site", tmp_path / "root"
    begun, freed = tmp_path / "begun", tmp_path / "freed"
    (site / "timm").mkdir(parents=True)
    (site / "timm/__init__.py").write_text(
        f"import os, sys, time\nif 'topos_loaded_here' not in sys.modules:\n    open({str(begun)!r}, 'w').close()\n"
        f"    while not os.path.exists({str(freed)!r}): time.sleep(0.01)\n"
    )
    root.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(site))
    told = tmp_path / "told"
    loop = f"import os\nopen({str(told)!r}, 'w').write(f'{{os.getpid()}} ')\nwhile True: pass\n{MARK}"
    with Agent(root, warming=True) as agent:
        looping = threading.Thread(target=_cancelled, args=(agent, loop))
        looping.start()
        _until(lambda: told.exists() and told.read_text().endswith(" "))
        agent.trace("m.py", f"import sys\nsys.modules['topos_loaded_here'] = sys\nimport timm\n{MARK}")
        _until(begun.exists)
        agent.cancel("loop.py")
        _until(lambda: _state(told.read_text().strip()) == "Z")  # who would reap it is importing
        freed.write_text("")
        looping.join(20)
        assert not looping.is_alive()


def _cancelled(agent, text):
    with pytest.raises(Cancelled):
        agent.trace("loop.py", text)


def _state(process):
    with open(f"/proc/{process}/stat") as file:
        return file.read().rpartition(") ")[2][0]


def _until(test):
    deadline = time.monotonic() + 20
    while not test():
        assert time.monotonic() < deadline
        time.sleep(0.01)
