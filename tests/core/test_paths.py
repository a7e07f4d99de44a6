"""Folders are 0700, files 0600, and nothing planted by others is used."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from isola_core.errors import StoreError
from isola_core.paths import (
    RUNTIME_PATH_LIMIT,
    Paths,
    ensure_private_dir,
    ensure_private_file,
    others_can_read,
    private_open,
    write_private,
)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs to give files to somebody else")
NOBODY = 65534
"""Root may write everywhere, so a test of refused rights runs as somebody else."""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o022, 0o000, 0o077], ids=["umask 022", "umask 000", "umask 077"])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder that everybody can write to, like /tmp."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def test_isola_home_puts_everything_into_one_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISOLA_HOME", str(tmp_path / "x"))
    paths = Paths.from_environment()
    assert paths.config_file == tmp_path / "x" / "config.yaml"
    assert paths.database == tmp_path / "x" / "isola.db"
    assert paths.state_dir.parent == paths.data_dir == tmp_path / "x"
    assert not (tmp_path / "x").exists()


def test_isola_home_may_be_relative_or_begin_with_a_tilde(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Paths.below(Path("here")).data_dir == tmp_path / "here"
    assert Paths.below(Path("~/there")).data_dir == tmp_path / "there"


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="XDG is Linux's")
def test_xdg_variables_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ISOLA_HOME", raising=False)
    for name in ("CONFIG_HOME", "DATA_HOME", "STATE_HOME", "RUNTIME_DIR"):
        (tmp_path / name).mkdir(mode=0o700)
        monkeypatch.setenv(f"XDG_{name}", str(tmp_path / name))
    paths = Paths.from_environment()
    assert paths.config_file == tmp_path / "CONFIG_HOME" / "isola" / "config.yaml"
    assert paths.data_dir == tmp_path / "DATA_HOME" / "isola"
    assert paths.state_dir == tmp_path / "STATE_HOME" / "isola"


@pytest.mark.parametrize("length", [10, 60, 90, 200])
def test_the_runtime_folder_leaves_room_for_a_socket(tmp_path: Path, length: int) -> None:
    paths = Paths.below(tmp_path / ("x" * length))
    assert len(os.fsencode(paths.runtime_dir)) <= RUNTIME_PATH_LIMIT
    assert Paths.below(tmp_path / ("y" * length)).runtime_dir != paths.runtime_dir


def test_a_runtime_folder_of_somebody_else_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ISOLA_HOME", raising=False)
    open_to_all = tmp_path / "run"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(open_to_all))
    assert open_to_all not in Paths.from_environment().runtime_dir.parents


def test_new_folders_and_files_are_private_under_any_umask(tmp_path: Path, umask: int) -> None:
    folder = ensure_private_dir(tmp_path / "a" / "b" / "c")
    assert [mode(each) for each in (folder, folder.parent, folder.parent.parent)] == [0o700] * 3
    with private_open(folder / "f", "w") as file:
        file.write("你好")
    assert mode(folder / "f") == 0o600
    write_private(folder / "g", b"x", replace=False)
    assert mode(folder / "g") == 0o600
    assert mode(ensure_private_file(folder / "h")) == 0o600


def test_wider_rights_are_taken_away(tmp_path: Path, umask: int) -> None:
    folder = tmp_path / "wide"
    folder.mkdir()
    folder.chmod(0o777)
    file = folder / "f"
    file.write_text("kept")
    file.chmod(0o666)
    assert others_can_read(folder)
    assert others_can_read(file)
    ensure_private_dir(folder)
    with private_open(file) as reader:
        assert reader.read() == "kept"
    assert (mode(folder), mode(file)) == (0o700, 0o600)
    assert not others_can_read(folder)


def test_rights_that_are_too_narrow_for_us_are_widened(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("")
    file.chmod(0o400)
    ensure_private_dir(tmp_path)
    if os.geteuid() == 0:
        private_open(file, "a").close()
        assert mode(file) == 0o600


def test_a_file_is_appended_truncated_and_created_once(tmp_path: Path) -> None:
    file = tmp_path / "f"
    for how, text in (("w", "one"), ("a", " two")):
        with private_open(file, how) as writer:
            writer.write(text)
    assert file.read_text() == "one two"
    with pytest.raises(FileExistsError):
        private_open(file, "x")
    with private_open(file, "w"):
        pass
    assert file.read_text() == ""
    with pytest.raises(FileNotFoundError):
        private_open(tmp_path / "none")


def test_writing_never_replaces_without_leave(tmp_path: Path) -> None:
    file = tmp_path / "f"
    write_private(file, b"first", replace=False)
    with pytest.raises(FileExistsError):
        write_private(file, b"second", replace=False)
    assert file.read_bytes() == b"first"
    write_private(file, b"second", replace=True)
    assert file.read_bytes() == b"second"
    assert [each.name for each in tmp_path.iterdir()] == ["f"]


def test_a_symlink_of_ones_own_is_followed(tmp_path: Path) -> None:
    real = tmp_path / "disk"
    real.mkdir()
    (tmp_path / "data").symlink_to(real)
    assert ensure_private_dir(tmp_path / "data") == real
    assert mode(real) == 0o700
    (tmp_path / "config.yaml").symlink_to("disk/dotfiles.yaml")
    write_private(tmp_path / "config.yaml", b"a", replace=False)
    write_private(tmp_path / "config.yaml", b"b", replace=True)
    assert (tmp_path / "config.yaml").is_symlink()
    assert (real / "dotfiles.yaml").read_bytes() == b"b"


def test_a_symlink_in_a_shared_folder_is_not_followed(shared: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    victim.chmod(0o755)
    (shared / "isola").symlink_to(victim)
    for path in (shared / "isola", shared / "isola" / "deeper"):
        with pytest.raises(StoreError, match="symlink"):
            ensure_private_dir(path)
    with pytest.raises(StoreError, match="symlink"):
        private_open(shared / "isola" / "f", "w")
    assert mode(victim) == 0o755
    assert [*victim.iterdir()] == []


def test_a_symlink_to_a_file_in_a_shared_folder_is_not_followed(
    shared: Path, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept")
    (shared / "log").symlink_to(victim)
    with pytest.raises(StoreError, match="symlink"):
        private_open(shared / "log", "w")
    with pytest.raises(StoreError, match="symlink"):
        write_private(shared / "log", b"x", replace=True)
    assert victim.read_text() == "kept"


@needs_root
def test_a_folder_of_somebody_else_in_a_shared_folder_is_not_used(shared: Path) -> None:
    planted = shared / "isola-0"
    planted.mkdir()
    os.chown(planted, 12345, 12345)
    for path in (planted, planted / "deeper"):
        with pytest.raises(StoreError, match="somebody else"):
            ensure_private_dir(path)


def test_a_circle_of_symlinks_is_an_error_and_no_hang(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(StoreError, match="circle"):
        ensure_private_dir(tmp_path / "a")


def test_a_file_where_a_folder_should_be_says_so(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    for path in (tmp_path / "f", tmp_path / "f" / "deeper"):
        with pytest.raises(StoreError, match="cannot be used: Not a directory"):
            ensure_private_dir(path)


def test_a_fifo_or_a_folder_is_no_file_and_no_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "fifo", tmp_path / "folder"):
        with pytest.raises(StoreError, match="cannot be used"):
            private_open(path)


@pytest.fixture
def read_only_folder() -> Iterator[Path]:
    """A folder of our own that nothing can be written into, seen by a person without root's rights."""
    folder = Path(tempfile.mkdtemp())
    before = os.geteuid()
    if before == 0:
        os.chown(folder, NOBODY, -1)
    folder.chmod(0o500)
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield folder
    finally:
        os.seteuid(before)
        folder.rmdir()


def test_a_read_only_folder_says_what_to_do(read_only_folder: Path) -> None:
    with pytest.raises(StoreError) as refusal:
        ensure_private_dir(read_only_folder / "data")
    assert "Permission denied" in refusal.value.message
    assert "ISOLA_HOME" in refusal.value.message


def test_a_file_system_that_takes_nothing_says_what_to_do() -> None:
    for act in (
        lambda: ensure_private_dir(Path("/proc/isola/data")),
        lambda: write_private(Path("/proc/isola.yaml"), b"x", replace=False),
        lambda: private_open(Path("/proc/isola.log"), "w"),
    ):
        with pytest.raises(StoreError) as refusal:
            act()
        assert "Nothing was written" in refusal.value.message
        assert "ISOLA_HOME" in refusal.value.message


def test_a_folder_of_everybody_keeps_its_rights(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    with pytest.raises(StoreError, match="many people use"):
        ensure_private_dir(shared)
    assert stat.S_IMODE(shared.stat().st_mode) == 0o1777
    assert stat.S_IMODE(ensure_private_dir(shared / "own").stat().st_mode) == 0o700
