"""`isola projects`: add, list, edit and retire."""

from __future__ import annotations

from pathlib import Path

import click

from isola_core.errors import InvalidInput
from isola_core.model import Project
from isola_core.projects import NewProject, ProjectChanges
from isola_tui.cli.invocation import Invocation, print_json, with_invocation
from isola_tui.cli.output import line, note, project_json, show, table
from isola_tui.cli.program import Program, opened


@click.group(short_help="Add, list, edit and retire projects.")
def projects() -> None:
    """Register the projects that messages go to."""


@projects.command()
@click.argument("named", required=False, metavar="[NAME]")
@click.option("--name", metavar="NAME", help="The same as the argument.")
@click.option("--description", default="", help="What it is about; helps to attribute messages.")
@click.option("--path", type=click.Path(path_type=Path), help="Its folder; agents work there.")
@click.option("--alias", "aliases", multiple=True, help="Another name; may be given repeatedly.")
@click.option("--harness", help="The backend it uses, as the configuration names it.")
@click.option("--protected", is_flag=True, help="Only you can choose it, never attribution.")
@click.option("--id", "project_id", help="Its stable id; made from the name without this.")
@with_invocation
def add(
    invocation: Invocation,
    named: str | None,
    name: str | None,
    description: str,
    path: Path | None,
    aliases: tuple[str, ...],
    harness: str | None,
    protected: bool,
    project_id: str | None,
) -> None:
    """Register a project. With --path and no name, the folder's name is used."""
    if named is not None and name is not None and named != name:
        raise click.UsageError("Give the name once.")
    wanted = name if named is None else named
    if wanted is None:
        if path is None:
            raise click.UsageError("Give a NAME, or --path FOLDER whose name is used.")
        wanted = path.expanduser().absolute().resolve().name
    with opened(invocation) as program:
        _check_harness(program, harness)
        new = NewProject(wanted, description, aliases, path, harness, protected, project_id)
        project = program.call(program.runtime.projects.add(new))
        _print(invocation, project, "added")


@projects.command("list")
@click.option("--all", "everything", is_flag=True, help="Retired ones too.")
@with_invocation
def list_all(invocation: Invocation, everything: bool) -> None:
    """List the projects."""
    with opened(invocation) as program:
        found = program.call(program.runtime.projects.all(retired=everything))
        if invocation.json:
            print_json({"projects": [project_json(each) for each in found]})
            return
        if not found:
            show("no projects; `isola projects add NAME` registers one")
            return
        header = ("ID", "NAME", "ALIASES", "HARNESS", "FLAGS", "PATH", "DESCRIPTION")
        show(table(header, [_row(program, each) for each in found]))


@projects.command()
@click.argument("named", metavar="NAME")
@click.option("--name", help="Its new name.")
@click.option("--description", help="What it is about.")
@click.option("--path", help='Its folder; "" for none.')
@click.option("--alias", "aliases", multiple=True, help="Its aliases, all of them.")
@click.option("--add-alias", "more", multiple=True, help="One more alias.")
@click.option("--no-aliases", is_flag=True, help="No alias at all.")
@click.option("--harness", help='Its backend; "" for the default one.')
@click.option("--protected/--no-protected", default=None, help="Only you can choose it.")
@click.option("--restore", is_flag=True, help="Bring a retired project back.")
@with_invocation
def edit(
    invocation: Invocation,
    named: str,
    name: str | None,
    description: str | None,
    path: str | None,
    aliases: tuple[str, ...],
    more: tuple[str, ...],
    no_aliases: bool,
    harness: str | None,
    protected: bool | None,
    restore: bool,
) -> None:
    """Change the project NAME (its name, alias or id). Its id and its memories stay."""
    if no_aliases and (aliases or more):
        raise click.UsageError("--no-aliases leaves no room for --alias and --add-alias.")
    with opened(invocation) as program:
        _check_harness(program, harness or None)
        old = program.project(named, retired=True)
        wanted = aliases or (() if no_aliases else old.aliases)
        changes = ProjectChanges(
            name=name,
            description=description,
            aliases=(*wanted, *more),
            path=None if path is None else path and str(Path(path).expanduser().absolute()),
            harness=harness,
            protected=protected,
            retired=False if restore else None,
        )
        project = program.call(program.runtime.projects.edit(old.id, changes))
        if any(each.id == project.id for each in program.runtime.config.projects):
            note(f"isola: the configuration sets {project.id} too, at every start: change it there")
        _print(invocation, project, "changed" if project != old else "as it was")


@projects.command()
@click.argument("named", metavar="NAME")
@with_invocation
def retire(invocation: Invocation, named: str) -> None:
    """No message goes to NAME any more. Its memories, sessions and history stay."""
    with opened(invocation) as program:
        _print(invocation, program.call(program.runtime.projects.retire(named)), "retired")


def _check_harness(program: Program, harness: str | None) -> None:
    """Refuse a backend that the configuration does not have, before anything is stored.

    Raises:
        InvalidInput, ConfigError: there is none of this name, or its settings are wrong.
    """
    if harness is not None:
        if not harness.strip():
            raise InvalidInput("a harness needs a name")
        program.runtime.config.harness_settings(harness)


def _print(invocation: Invocation, project: Project, what: str) -> None:
    if invocation.json:
        print_json({"project": project_json(project), "result": what})
    else:
        place = f"  {line(project.path, 300)}" if project.path else ""
        show(f"{what}: {line(project.name, 120)} ({project.id}){place}")


def _row(program: Program, project: Project) -> tuple[str, ...]:
    flags = [
        word
        for word, is_set in (("protected", project.protected), ("retired", project.retired))
        if is_set
    ]
    return (
        project.id,
        line(project.name, 40),
        line(", ".join(project.aliases), 40),
        line(program.runtime.config.harness_of(project), 20),
        ", ".join(flags),
        line(project.path or "", 120),
        line(project.description, 200),
    )
