"""Where Isola keeps its files, and that nobody else can read them.

Folders are 0700 and files 0600, whatever the umask and whatever rights they had before: the store
holds everything a person typed. A folder that other people can write to (`/tmp`) is a place where
they can plant things, so below one neither a symlink nor somebody else's folder is used.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from isola_core.errors import StoreError

APPLICATION: Final = "isola"
HOME_VARIABLE: Final = "ISOLA_HOME"
"""Names one folder that holds everything: configuration, data, state and sockets."""

PRIVATE_DIR_MODE: Final = 0o700
PRIVATE_FILE_MODE: Final = 0o600

RUNTIME_PATH_LIMIT: Final = 72
"""Bytes. A unix socket's path must stay under 107; this leaves 34 for its name."""

_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class Paths:
    """The places of one person on one machine. Nothing is created until somebody asks for it."""

    config_file: Path
    data_dir: Path
    state_dir: Path
    runtime_dir: Path

    @property
    def database(self) -> Path:
        """The store's file where the configuration names no other."""
        return self.data_dir / "isola.db"

    @classmethod
    def below(cls, home: Path) -> Paths:
        """Everything in one folder, as `ISOLA_HOME` asks for."""
        home = Path(os.path.abspath(home.expanduser()))  # noqa: PTH100 - symlinks are kept as given
        return cls(
            config_file=home / "config.yaml",
            data_dir=home,
            state_dir=home / "state",
            runtime_dir=_short(home / "run"),
        )

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Paths:
        """`ISOLA_HOME` where it is set, else the system's own places (XDG on Linux).

        `environ` None is this process's. Without `ISOLA_HOME` the places are this process's anyway.
        """
        home = (os.environ if environ is None else environ).get(HOME_VARIABLE, "").strip()
        if home:
            return cls.below(Path(home))
        from platformdirs import PlatformDirs  # only here: ISOLA_HOME needs none of it

        places = PlatformDirs(APPLICATION, appauthor=False)
        return cls(
            config_file=places.user_config_path / "config.yaml",
            data_dir=places.user_data_path,
            state_dir=places.user_state_path,
            runtime_dir=_short(_runtime()),
        )


def ensure_private_dir(path: Path) -> Path:
    """Create the folder and its missing parents, or take the existing one; make it 0700.

    Returns its real path. Raises `StoreError` where it cannot be used: not a folder, not ours, read
    only, everybody's (sticky), or reached through something that another person may have planted.
    """
    real = real_path(path)
    if real.exists() and real.stat().st_mode & stat.S_ISVTX:
        raise StoreError(
            f"{path} is a folder that many people use, so its rights are not changed. Nothing was "
            f"written. Set {HOME_VARIABLE} to a folder of your own, such as one in it.",
            path=str(path),
        )
    try:
        for missing in reversed([*_missing(real)]):
            missing.mkdir(mode=PRIVATE_DIR_MODE, exist_ok=True)
            _set_mode(missing, os.O_DIRECTORY, PRIVATE_DIR_MODE)
        _set_mode(real, os.O_DIRECTORY, PRIVATE_DIR_MODE)
    except OSError as error:
        raise _unusable("folder", path, error) from error
    real_path(real)  # what was missing before may have been planted in between
    return real


def ensure_private_file(path: Path) -> Path:
    """Create the file empty if it is missing; make it 0600. Returns its real path.

    For files that a library opens later by name, such as the database.
    """
    os.close(open_private_fd(path, os.O_RDWR | os.O_CREAT))
    return real_path(path)


def private_open(path: Path, mode: str = "r") -> IO[str]:
    """Open a text file (UTF-8) as `open` does, always as 0600 and never through a planted symlink.

    `mode` is one of "r", "w", "a", "x". Raises `StoreError`, but for `FileNotFoundError` ("r") and
    `FileExistsError` ("x"), which callers tell apart.
    """
    flags = {
        "r": os.O_RDONLY,
        "w": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
        "a": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
        "x": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
    }[mode]
    return os.fdopen(open_private_fd(path, flags), mode.replace("x", "w"), encoding="utf-8")


def open_private_fd(path: Path, flags: int) -> int:
    """A file descriptor of the file, which is regular and 0600. Raises as `private_open` does."""
    real = real_path(path)
    # O_NONBLOCK: opening a planted FIFO must not hang. It means nothing for a regular file.
    flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    truncate, flags = flags & os.O_TRUNC, flags & ~os.O_TRUNC
    try:
        descriptor = os.open(real, flags, PRIVATE_FILE_MODE)
    except FileExistsError:
        raise
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not flags & os.O_CREAT:
            raise
        raise _unusable("file", path, error) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{real} is not a regular file")
        _tighten(descriptor, PRIVATE_FILE_MODE)
        if truncate:
            os.ftruncate(descriptor, 0)
    except OSError as error:
        os.close(descriptor)
        raise _unusable("file", path, error) from error
    return descriptor


def write_private(path: Path, content: bytes, *, replace: bool) -> None:
    """Write a whole file as 0600 so that a reader or a crash sees the old one or the new one.

    With `replace` False an existing file stays as it is and `FileExistsError` is raised, also when
    another process creates it at the same moment. Where `path` is a symlink of the person's own,
    the file behind it is written. Other trouble raises `StoreError`.
    """
    real = real_path(path)
    temporary = real.with_name(f".{real.name[:100]}.{os.urandom(6).hex()}")
    descriptor = open_private_fd(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            temporary.replace(real)
        else:
            real.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError as error:
        raise _unusable("file", path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def real_path(path: Path) -> Path:
    """The path with its symlinks resolved; `StoreError` where one may have been planted.

    A symlink in a person's own folder is their business (a data folder on another disk, a config
    in a dotfiles repository). Below a folder that others can write to, no symlink is followed and
    every folder must be ours or root's.
    """
    path = Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 - resolved step by step below
    real = Path(path.anchor)
    waiting = [*reversed(path.parts[1:])]
    followed = 0
    while waiting:
        part = waiting.pop()
        if part == "..":
            real = real.parent
            continue
        step = real / part
        try:
            entry = step.lstat()
        except FileNotFoundError:
            return step.joinpath(*reversed(waiting))
        except OSError as error:
            raise _unusable("folder", step, error) from error
        shared = bool(real.stat().st_mode & stat.S_IWOTH)
        if stat.S_ISLNK(entry.st_mode):
            if shared:
                raise StoreError(
                    f"{step} is a symlink in a folder that everybody can write to, so it is not "
                    f"followed. Nothing was written. Remove it, or set {HOME_VARIABLE} to a folder "
                    "of your own.",
                    path=str(step),
                )
            followed += 1
            if followed > 40:
                raise StoreError(f"{path} runs in a circle of symlinks.", path=str(path))
            link = step.readlink()
            if link.is_absolute():
                real = Path(link.anchor)
                waiting += reversed(link.parts[1:])
            else:
                waiting += reversed(link.parts)
            continue
        if shared and entry.st_uid not in (os.geteuid(), 0):
            raise StoreError(
                f"{step} belongs to somebody else (uid {entry.st_uid}) and lies in a folder that "
                f"everybody can write to, so it is not used. Nothing was written. Set "
                f"{HOME_VARIABLE} to a folder of your own.",
                path=str(step),
            )
        real = step
    return real


def others_can_read(path: Path) -> bool:
    """Whether the group or everybody has any right on the file or folder."""
    return bool(path.stat().st_mode & 0o077)


def _missing(path: Path) -> Iterator[Path]:
    while not path.exists():
        yield path
        path = path.parent


def _set_mode(path: Path, flags: int, mode: int) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags)
    try:
        _tighten(descriptor, mode)
    finally:
        os.close(descriptor)


def _tighten(descriptor: int, mode: int) -> None:
    if stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
        os.fchmod(descriptor, mode)


def _unusable(what: str, path: Path, error: OSError) -> StoreError:
    reason = error.strerror or str(error)
    return StoreError(
        f"The {what} {path} cannot be used: {reason}. Nothing was written. Make it writable for "
        f"you, or set {HOME_VARIABLE} to a folder that is.",
        path=str(path),
        reason=reason,
    )


def _runtime() -> Path:
    """The login's runtime folder (it ends with the login), else one in the temporary folder."""
    login = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}")
    with contextlib.suppress(OSError):
        entry = login.stat()
        private = entry.st_uid == os.geteuid() and not entry.st_mode & _WRITABLE_BY_OTHERS
        if login.is_absolute() and stat.S_ISDIR(entry.st_mode) and private:
            return login / APPLICATION
    return Path(tempfile.gettempdir()) / f"{APPLICATION}-{os.geteuid()}"


def _short(runtime: Path) -> Path:
    """`runtime`, or a folder named by its hash where a socket's path in it would be too long."""
    if len(os.fsencode(runtime)) <= RUNTIME_PATH_LIMIT:
        return runtime
    digest = hashlib.sha256(os.fsencode(runtime)).hexdigest()[:12]
    name = Path(f"{APPLICATION}-{os.geteuid()}") / digest
    usual = Path(tempfile.gettempdir()) / name
    if len(os.fsencode(usual)) <= RUNTIME_PATH_LIMIT:
        return usual
    return Path("/tmp") / name  # noqa: S108 - real_path() checks what is below a shared folder
