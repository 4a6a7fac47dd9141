"""The bars of topos: plans, answers from what is held, answers while a trace runs, cancelling, and a long day of edits."""

import itertools
import random
import time

from benchmarks.editor.table import Published, asked, below, milliseconds, resident, row, state, value
from tests.lsp.client import Client, at, position, span

DEBOUNCE = 150
TRIES = 20
PARTS = ("plans", "answers")


def start(home, starts):
    """Measures `initialize` from the start of the process; gives the last client and its folder."""
    folder = home / "topos"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    figures = []
    for number in range(starts):
        begun = time.perf_counter()
        client = Client(home)
        client.initialize(folder, options={"untrustedWorkspace": False})
        figures.append(milliseconds(begun))
        if number < starts - 1:
            client.shutdown()
            client.close()
    row("topos: initialize, from the start of the process", figures, "<= 500")
    return client, folder


class Edited:
    """One case in one server: its buffer and the number of its last edit."""

    def __init__(self, client, folder, case):
        self.client, self.case = client, case
        self.versions = itertools.count(2)
        path = folder / f"{case.title.split()[0]}_model.py"
        path.write_text(case.text(0))
        begun = time.perf_counter()
        self.uri = client.open(path)
        client.wait_for_diagnostics(self.uri, lambda found: any(case.said(0) in each["message"] for each in found))
        row(f"{case.title}: first plan", [milliseconds(begun)])

    def change(self, text):
        """Sends a text and gives its version."""
        version = next(self.versions)
        self.client.change(self.uri, text, version)
        return version

    def plan(self, number):
        """Gives the milliseconds until results moved along, and until the plan of an edit."""
        moved, planned = Published(self.client, self.uri, None, bool), self.planned(number)
        begun = time.perf_counter()
        moved.version = planned.version = self.change(self.case.text(number))
        first = moved.wait()
        return (first - begun) * 1000, (planned.wait() - begun) * 1000

    def planned(self, number):
        """Waits for the plan of an edit; its version is still to be set."""
        said = self.case.said(number)
        return Published(self.client, self.uri, None, lambda found: any(said in each["message"] for each in found))

    def questions(self):
        """Lists the requests of an editor, with their params."""
        text = self.case.text(0)
        line, column = self.case.here(text)
        here = {**at(self.uri), "position": position(line, column)}
        where = {**at(self.uri), "range": span(line, column, line, column), "context": {"diagnostics": []}}
        whole = {**at(self.uri), "range": span(0, 0, text.count("\n") + 1, 0)}
        return {
            "hover": ("textDocument/hover", here), "inlay hints": ("textDocument/inlayHint", whole),
            "code lens": ("textDocument/codeLens", at(self.uri)), "code actions": ("textDocument/codeAction", where),
        }  # fmt: skip


def measure(client, folder, case, edits, parts):
    """Prints a case's rows: of new plans after edits, of what is answered meanwhile."""
    edited = Edited(client, folder, case)
    time.sleep(3)  # what the first trace had imported is taken over into the warm process
    if "plans" in parts:
        moved, plans = zip(*(edited.plan(number) for number in range(1, edits + 1)), strict=True)
        row(f"{case.title}: old results moved, after an edit", moved, "<= 30")
        row(f"{case.title}: new plan, debounce of {DEBOUNCE} included", plans, f"<= {case.bar} + {DEBOUNCE}")
    if "answers" in parts:
        time.sleep(0.5)
        for name, (method, params) in edited.questions().items():
            row(f"{case.title}: {name}", [asked(client, method, params) for _ in range(edits)], "p95 <= 10")
        row(f"{case.title}: any of them during a trace", _during(edited, edits), "never over 50")
        row(f"{case.title}: cancel, to the dead worker", _cancelled(edited), "<= 100")
    return edited


def _during(edited, edits):
    """Asks at random moments of traces, from the keystroke to the new plan."""
    generator = random.Random(5)
    figures = []
    for number in range(edits, edits + TRIES):
        planned = edited.planned(number)
        planned.version = edited.change(edited.case.text(number))
        questions = list(edited.questions().values())
        for _ in range(24):
            time.sleep(generator.random() * 0.04)
            figures.append(asked(edited.client, *generator.choice(questions)))
        planned.wait()
    return figures


def _cancelled(edited):
    """Gives the milliseconds from the editor's cancel to the end of a process that spins."""
    server = edited.client.process.pid
    figures = []
    for number in range(TRIES):
        known = set(below(server))
        edited.change(f"{edited.case.text(number)}while True: pass\n")
        spinning = _spinning(server, known)
        begun = time.perf_counter()
        edited.client.start_request("workspace/executeCommand", {"command": "topos.cancel", "arguments": [edited.uri]})
        while (found := state(spinning)) is not None and found[0] != "Z":
            time.sleep(0.0005)
        figures.append(milliseconds(begun))
    return figures


def _spinning(server, known):
    """Waits for a new process that uses the processor, and gives it."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for process in set(below(server)) - known:
            before = state(process)
            time.sleep(0.3)
            after = state(process)
            if before and after and after[1] - before[1] > 3:
                return process
        time.sleep(0.02)
    raise TimeoutError("no process spins")


def soak(client, edited, edits, files):
    """Edits for a long time, most of them into a trace that runs: memory stays flat, and no process is left over.

    `files` are open in the server; each has an owner beside the warm process.
    """
    figures = []
    processes = 0
    for number in range(edits):
        edited.change(edited.case.text(number))
        time.sleep(0.02 if number % 5 else 0.7)
        if number % (edits // 10) == edits // 10 - 1:
            figures.append(resident(client.process.pid))
            processes = max(processes, len(below(client.process.pid)))
    time.sleep(3)
    told = " ".join(f"{figure:.0f}" for figure in figures)
    value(f"soak: resident MiB after each tenth of {edits} edits", "", told)
    value("soak: processes below the server meanwhile, at most", processes)
    value(
        "soak: processes below the server afterwards",
        len(below(client.process.pid)),
        f"{1 + files}: a warm one, an owner a file",
    )
