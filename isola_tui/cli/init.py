"""`isola init`: writes a configuration with the projects that a person picks."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from isola_core.config import Config, ProjectConfig, write_config
from isola_core.errors import Conflict, InvalidInput
from isola_core.paths import Paths, write_private
from isola_core.projects import resolved_folder, slug
from isola_core.store.inspection import registered_projects
from isola_core.text import name_key, safe_label
from isola_harnesses.claude.past import past_folders
from isola_tui.cli.invocation import Invocation, print_json, with_invocation
from isola_tui.cli.output import line, note, show
from isola_tui.cli.repositories import description_of, find_repositories


@dataclass(frozen=True, slots=True)
class Offer:
    """A folder that may become a project, and why it is offered."""

    path: Path
    why: str


@click.command(short_help="Write a configuration; offers git repositories.")
@click.option("--force", is_flag=True, help="Replace a configuration that is there.")
@click.option(
    "--path",
    "top",
    default=".",
    type=click.Path(path_type=Path, file_okay=False),
    help="Look for git repositories here and below (default: this folder).",
)
@click.option("--yes", is_flag=True, help="Take every repository, ask nothing.")
@click.option(
    "--past/--no-past",
    default=None,
    help="Offer folders lately used with Claude Code or Codex too; asked without this.",
)
@with_invocation
def init(invocation: Invocation, force: bool, top: Path, yes: bool, past: bool | None) -> None:
    """Write config.yaml: offers the git repositories below a folder as projects.

    With --yes, and with --json, nothing is asked: every repository is taken.
    """
    paths = Paths.from_environment(os.environ)
    target = invocation.config or paths.config_file
    if os.path.lexists(target) and not force:
        raise Conflict(
            f"{target} exists already; nothing was changed. `isola init --force` replaces it.",
            existing=str(target),
        )
    asks = not (yes or invocation.json)
    if not top.is_dir():
        raise InvalidInput(f"there is no folder {top}; nothing was written")
    repositories = find_repositories(top.resolve())
    offers = [Offer(each, "git repository") for each in repositories.folders]
    if past is None and asks:
        past = click.confirm(
            "Offer the folders lately used with Claude Code or Codex too? Only file times and the "
            "recorded folders are read",
            default=False,
        )
    if past:
        known = {each.path for each in offers}
        offers += [
            Offer(each.path, "used with " + " and ".join(each.agents))
            for each in past_folders(os.environ)
            if each.path not in known
        ]
    usable = [each for each in offers if _usable(each.path)]
    chosen = _ask(usable) if asks and usable else usable
    config = Config(projects=_projects([each.path for each in chosen], Config().store_path(paths)))
    if force:
        _keep_old(target)
    write_config(config, target, force=force)
    if repositories.cut:
        note("isola: there was more below that folder than is looked at; --path narrows it")
    _print(invocation, target, config)


def _keep_old(target: Path) -> None:
    """Leave a copy of what is replaced: a person may have written much into it."""
    try:
        old = target.read_bytes()
    except FileNotFoundError:
        return
    except OSError as error:
        raise InvalidInput(
            f"{target} cannot be kept as a copy ({error.strerror}); nothing was changed"
        ) from error
    copy = target.with_name(f"{target.name}.old")
    write_private(copy, old, replace=True)
    note(f"isola: the old configuration is kept in {line(str(copy), 300)}")


def _usable(path: Path) -> bool:
    try:
        resolved_folder(path)
    except InvalidInput:
        return False
    return True


def _ask(offers: Sequence[Offer]) -> Sequence[Offer]:
    for number, each in enumerate(offers, 1):
        show(f"{number:4}  {line(str(each.path), 300)}  ({each.why})")
    while True:
        said: str = click.prompt("Which? (such as 1,3-5; all; none)", default="all")
        try:
            return [offers[each - 1] for each in picked(said, len(offers))]
        except InvalidInput as error:
            note(f"isola: {error.message}")


def picked(said: str, count: int) -> list[int]:
    """The numbers from 1 to `count` that an answer such as `1,3-5`, `all` or `none` picks.

    Raises:
        InvalidInput: it is no such answer.
    """
    words = [each for each in re.split(r"[\s,]+", said.strip().lower()) if each]
    if words == ["all"]:
        return list(range(1, count + 1))
    if words in (["none"], []):
        return []
    numbers: dict[int, None] = {}
    for each in words:
        match = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", each)
        first = int(match[1]) if match else 0
        last = int(match[2] or first) if match else 0
        if not 1 <= first <= last <= count:
            raise InvalidInput(f"{safe_label(each, 40)!r} is none of 1 to {count}, all, none")
        numbers.update(dict.fromkeys(range(first, last + 1)))
    return list(numbers)


def _projects(folders: Sequence[Path], database: Path) -> tuple[ProjectConfig, ...]:
    """A project for each folder; one that the store knows by its folder keeps id and name."""
    registered = registered_projects(database)
    by_path = {each.path: each for each in registered if not each.retired}
    taken = {name_key(name) for each in registered for name in (each.id, each.name)}
    made: list[ProjectConfig] = []
    for folder in folders:
        real = resolved_folder(folder)
        known = by_path.get(real)
        if known is not None:
            project_id, name = known.id, known.name
        else:
            project_id, name = _names(Path(real), taken)
        taken |= {name_key(project_id), name_key(name)}
        description = description_of(folder)
        made.append(
            ProjectConfig(id=project_id, name=name, description=description, path=Path(real))
        )
    return tuple(made)


def _names(folder: Path, taken: set[str]) -> tuple[str, str]:
    """An id and a name that nothing else has: the folder's, else with its parent's before it."""
    base = safe_label(folder.name, 80) or "project"
    parent = safe_label(folder.parent.name, 30)
    tries = [base, f"{parent} {base}", *(f"{base} {number}" for number in range(2, 10_000))]
    for name in tries:
        project_id = slug(name)
        if not {name_key(name), name_key(project_id)} & taken:
            return project_id, name
    raise InvalidInput(f"no name is left for {folder}")


def _print(invocation: Invocation, target: Path, config: Config) -> None:
    if invocation.json:
        print_json(
            {
                "config": str(target),
                "projects": [
                    {"id": each.id, "name": each.name, "path": str(each.path)}
                    for each in config.projects
                ],
            }
        )
        return
    count = len(config.projects)
    show(f"wrote {line(str(target), 300)} with {count} project{'' if count == 1 else 's'}")
    for each in config.projects:
        show(f"  {each.id}  {line(each.name, 120)}  {line(str(each.path), 300)}")
