"""After a whole run, says what each part of the suite took beside what it may take."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.budgets import PARTS, spent


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Prints the seconds of parts that ran whole: the time of their tests, over the processes that shared them."""
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    durations: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                durations[report.nodeid] += report.duration
    processes = getattr(config.option, "numprocesses", None) or 1
    terminalreporter.section(f"seconds of parts, {processes} processes")
    for part in PARTS:
        took = spent(part, durations) / processes
        over = "  OVER" if took > part.seconds else ""
        terminalreporter.line(f"{part.name:<12} {took:6.0f} of {part.seconds}{over}")
