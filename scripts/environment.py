"""Makes a virtual environment of the project's own, once, and finds it again.

Behind `scripts/run` and `scripts/test`; only the standard library, since nothing is installed yet.
What is said goes to stderr, so that the output of the program that follows stays its own.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The checkout."""

STAMP = "isola-setup.json"
"""Inside the environment: says that we made it, from what, and whether that was finished."""


class SetupError(Exception):
    """The environment cannot be made; the text says why and what to do."""


def prepare(folder: str, extra: str = "", root: Path = ROOT) -> Path:
    """Return `root/folder`, a virtual environment with the project installed (editable) in it.

    It is made where it is missing, brought up to date where pyproject.toml changed, and made anew
    where its interpreter, or the checkout's place, is another one now. Several processes may call
    this at once: one works, the others wait. An interrupted set-up is started afresh.

    Args:
        folder: the environment's name, such as ".venv".
        extra: the optional dependencies to install too, such as "dev".
        root: the checkout.

    Raises:
        SetupError: no pip in this Python, no network, no right to write, or a folder of that name
            that is not ours to replace.
    """
    place = root / folder
    try:
        with _only_one(root / f"{folder}.lock", folder):
            _bring_up_to_date(place, extra, root)
    except OSError as error:
        raise SetupError(f"{folder} cannot be written: {error}") from error
    return place


def _bring_up_to_date(place: Path, extra: str, root: Path) -> None:
    base = f"{sys.version} {sys.base_prefix} {root}"
    project = _digest((root / "pyproject.toml").read_bytes() + extra.encode())
    found = _read_stamp(place)
    if place.exists() and found is None and any(place.iterdir()):
        raise SetupError(
            f"{place} was not made by this script, so it stays as it is. "
            "Move it out of the way and run this again."
        )
    finished = {"base": base, "project": project, "complete": True}
    interpreter = place / "bin" / "python"
    if found == finished and interpreter.exists():
        return
    if found is None or found != finished | {"project": found.get("project")}:
        _make(place, base)
    else:
        say(f"pyproject.toml changed: bringing {place.name} up to date")
    _write_stamp(place, {"base": base, "project": project, "complete": False})
    _install(interpreter, f"{root}[{extra}]" if extra else str(root), place.name)
    _write_stamp(place, finished)


def _make(place: Path, base: str) -> None:
    if importlib.util.find_spec("ensurepip") is None:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise SetupError(
            f"this Python ({sys.executable}) cannot make virtual environments: "
            "its module ensurepip is missing. On Debian and Ubuntu: "
            f"apt install python3-venv (or python{version}-venv). Then run this again."
        )
    say(f"setting up {place.name} (once; needs the network, takes about a minute)")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    _write_stamp(place, {"base": base, "project": "", "complete": False})
    made = subprocess.run(
        [sys.executable, "-m", "venv", str(place)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if made.returncode:
        raise SetupError(f"the virtual environment could not be made:\n{made.stdout.strip()}")


def _install(interpreter: Path, project: str, name: str) -> None:
    """Install with pip, its words passed on as they come; say so where the network is the cause."""
    arguments = ["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
    offline = False
    with subprocess.Popen(
        [str(interpreter), *arguments, "--editable", project],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PIP_USER": "0"},
    ) as pip:
        for line in pip.stdout or ():
            sys.stderr.write(line)
            offline = offline or "connection" in line.lower()
    if pip.returncode:
        cause = (
            "the package index cannot be reached (network, proxy or PIP_INDEX_URL)"
            if offline
            else "pip failed, its own words are above"
        )
        raise SetupError(
            f"{name} is not ready: {cause}. Nothing outside {name} was changed; "
            "the same command goes on from here."
        )


@contextmanager
def _only_one(lock: Path, folder: str) -> Iterator[None]:
    """Hold an advisory lock; it ends with the process, however that ends."""
    with lock.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process is setting up {folder}: waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _read_stamp(place: Path) -> dict[str, object] | None:
    try:
        stamp = json.loads((place / STAMP).read_text())
    except FileNotFoundError:
        return None
    except ValueError:
        return {}
    return stamp if isinstance(stamp, dict) else {}


def _write_stamp(place: Path, stamp: dict[str, object]) -> None:
    fresh = place / f"{STAMP}.new"
    fresh.write_text(json.dumps(stamp))
    fresh.replace(place / STAMP)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def say(text: str) -> None:
    """One line about what happens, to stderr."""
    print(f"isola: {text}", file=sys.stderr, flush=True)


def become(program: Path, arguments: list[str]) -> None:
    """Go on as `program`: same process, same terminal, same signals."""
    sys.stdout.flush()
    os.execv(program, [str(program), *arguments])


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
