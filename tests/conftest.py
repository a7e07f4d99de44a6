"""The same surroundings for every test, and the promises that hold for a whole run.

Nothing of the person's own environment, files or settings reaches a test; no test leaves a process
behind; a run that must be whole (`--no-skips`) fails on a skip and names it.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import psutil
import pytest

hypothesis.settings.register_profile(
    "isola", deadline=None, derandomize=bool(os.environ.get("CI")), print_blob=True
)
hypothesis.settings.load_profile("isola")

PREFIXES_OF_OTHERS = ("ISOLA_", "XDG_", "CLAUDE", "LC_", "GIT_")
"""Variables that belong to the person, the desktop or an agent that runs the tests."""

NAMES_OF_OTHERS = (
    *("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "COLORTERM", "LANGUAGE"),
    *("TMUX", "STY", "SSH_TTY"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"),
    *("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "DEEPSEEK_API_KEY"),
)

PINNED = {"TZ": "UTC", "TERM": "xterm-256color", "LANG": "C.UTF-8"}

PATIENCE_S = 5.0
"""How long a process may take to end after the last test that used it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("isola")
    group.addoption("--no-skips", action="store_true", help="a skipped test fails the run")
    group.addoption(
        "--real-cli", action="store_true", help="run the tests that need a real agent program too"
    )
    group.addoption(
        "--isola", type=Path, help="the program under test (default: beside this Python)"
    )
    group.addoption(
        "--wheel",
        type=Path,
        help="the wheel that --isola was installed from, to be looked into too",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what needs something that only an option says is there."""
    absent = [
        marker
        for marker, option in (("real_cli", "--real-cli"), ("wheel", "--wheel"))
        if not config.getoption(option)
    ]
    left_out = [item for item in items if any(item.get_closest_marker(each) for each in absent)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def skip_reasons(reporter: pytest.TerminalReporter) -> Counter[str]:
    """Why tests were skipped, and how many for each reason."""
    reasons: Counter[str] = Counter()
    for report in reporter.stats.get("skipped", []):
        longrepr = report.longrepr
        reason = longrepr[2] if isinstance(longrepr, tuple) else str(longrepr)
        reasons[reason.removeprefix("Skipped: ")] += 1
    return reasons


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter: pytest.TerminalReporter | None = session.config.pluginmanager.get_plugin(
        "terminalreporter"
    )
    if reporter is None or not session.config.getoption("--no-skips"):
        return
    if skip_reasons(reporter) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons = skip_reasons(terminalreporter)
    if not reasons:
        return
    terminalreporter.section("not tested on this machine")
    for reason, count in reasons.most_common():
        terminalreporter.line(f"{count} test{'s' if count > 1 else ''}: {reason}")
    if terminalreporter.config.getoption("--no-skips"):
        terminalreporter.line("This run must be whole (--no-skips), so it fails.")


@pytest.fixture(scope="session", autouse=True)
def _clean_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Pin the environment before any fixture of a wider scope than one test starts something."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(PREFIXES_OF_OTHERS) or name in NAMES_OF_OTHERS:
                patch.delenv(name)
        for name, value in PINNED.items():
            patch.setenv(name, value)
        _move_home(patch, tmp_path_factory)
        time.tzset()
        yield
    time.tzset()


@pytest.fixture(autouse=True)
def _home_of_its_own(
    _clean_environment: None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Give each test an empty HOME and ISOLA_HOME."""
    _move_home(monkeypatch, tmp_path_factory)


def _move_home(patch: pytest.MonkeyPatch, factory: pytest.TempPathFactory) -> None:
    home = factory.mktemp("home")
    patch.setenv("HOME", str(home))
    patch.setenv("ISOLA_HOME", str(home / "isola"))


@pytest.fixture(scope="session", autouse=True)
def _no_process_is_left(
    _clean_environment: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Fail the run, naming the test, when a child or a detached process outlives the tests."""
    yield
    base = f"{tmp_path_factory.getbasetemp()}{os.sep}"
    deadline = time.monotonic() + PATIENCE_S
    while (left := _processes_of(base)) and time.monotonic() < deadline:
        psutil.wait_procs(left, timeout=0.1)
    if left:
        lines = [_describe(process) for process in left]
        for process in left:
            process.kill()
        pytest.fail("processes outlived the tests:\n" + "\n".join(lines), pytrace=False)


def _processes_of(base: str) -> list[psutil.Process]:
    """Our children, and processes of nobody's whose home is one of this run's."""
    me = psutil.Process()
    found = {process.pid: process for process in me.children(recursive=True)}
    for process in psutil.process_iter():
        home = _environment(process).get("HOME", "")
        if process.pid != me.pid and home.startswith(base):
            found[process.pid] = process
    return [process for process in found.values() if _counts(process)]


def _counts(process: psutil.Process) -> bool:
    try:
        tracker = any("multiprocessing.resource_tracker" in each for each in process.cmdline())
        return not tracker and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _describe(process: psutil.Process) -> str:
    try:
        command = " ".join(process.cmdline())
    except psutil.Error:
        command = "?"
    test = _environment(process).get("PYTEST_CURRENT_TEST", "unknown test")
    return f"  {process.pid} {command}  ({test})"


def _environment(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except (psutil.Error, OSError):
        return {}
