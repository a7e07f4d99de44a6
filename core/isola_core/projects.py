"""Registration of projects, and finding the one that a person names."""

from __future__ import annotations

import difflib
import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from isola_core.errors import Ambiguous, Conflict, InvalidInput, NotFound
from isola_core.model import Project
from isola_core.secrets import refuse_secrets
from isola_core.store import memories, projects
from isola_core.store.sqlite import SqliteStore
from isola_core.store.transaction import Transaction
from isola_core.text import is_blank, name_key, normalise_message, safe_label

ID_PATTERN: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}\Z")
NAME_LIMIT: Final = 120
ALIAS_LIMIT: Final = 64
DESCRIPTION_LIMIT: Final = 2000


@dataclass(frozen=True, slots=True)
class NewProject:
    """A project to be registered; `id` None: made from the name."""

    name: str
    description: str = ""
    aliases: tuple[str, ...] = ()
    path: Path | None = None
    harness: str | None = None
    protected: bool = False
    id: str | None = None


@dataclass(frozen=True, slots=True)
class ProjectChanges:
    """What to change; None leaves a field as it is. An empty `path` or `harness` clears it."""

    name: str | None = None
    description: str | None = None
    aliases: tuple[str, ...] | None = None
    path: str | None = None
    harness: str | None = None
    protected: bool | None = None
    retired: bool | None = None


class Projects:
    """The use cases of registration, for one person."""

    def __init__(self, store: SqliteStore, owner: str, label: str) -> None:
        self._store = store
        self._owner = owner
        self._label = label

    async def all(self, *, retired: bool = False) -> Sequence[Project]:
        """The projects in order of registration."""
        return await self._store.read(
            lambda tx: projects.list_projects(tx, self._owner, retired=retired)
        )

    async def find(self, named: str, *, retired: bool = False) -> Project:
        """The project of this id, name or alias.

        Raises:
            NotFound: none is called that; the text names the closest ones.
        """
        return await self._store.read(lambda tx: self._find(tx, named, retired=retired))

    def _find(self, tx: Transaction, named: str, *, retired: bool) -> Project:
        known = projects.list_projects(tx, self._owner, retired=True)
        key = name_key(named)
        by_id = [each for each in known if each.id == named.strip().lower()]
        hits = by_id or [each for each in known if key and key in _keys(each)]
        if len(hits) > 1:
            ids = [each.id for each in hits]
            raise Ambiguous(f"{named!r} fits several projects: {', '.join(ids)}", candidates=ids)
        if not hits:
            raise _unknown(named, [each for each in known if not each.retired])
        if hits[0].retired and not retired:
            raise Conflict(
                f"project {hits[0].name} is retired; `isola projects edit {hits[0].id} --restore` "
                "brings it back"
            )
        return hits[0]

    async def add(self, new: NewProject) -> Project:
        """Register a project with a scope and a search index of its own.

        Raises:
            InvalidInput: a name, id, alias or folder that cannot be used.
            Conflict: a name, alias, id or folder that another project has already.
            SecretRefused: a text holds a credential.
        """
        return await self._store.write(lambda tx: self._add(tx, new, self._everyone(tx)))

    def _everyone(self, tx: Transaction) -> list[Project]:
        return projects.list_projects(tx, self._owner, retired=True)

    def _add(self, tx: Transaction, new: NewProject, known: Sequence[Project]) -> Project:
        name = _name(new.name)
        path = resolved_folder(new.path) if new.path is not None else None
        project_id = _new_id(new.id, name, {each.id for each in known})
        project = Project(
            id=project_id,
            name=name,
            scope=self._scope(tx, project_id),
            description=_description(new.description),
            aliases=_aliases(new.aliases, name, project_id),
            path=path,
            harness=new.harness or None,
            protected=new.protected,
        )
        _check_free(project, known)
        projects.add_scope(tx, project.scope, "project", self._owner)
        projects.insert_project(tx, self._owner, project, name_key(project.name))
        self._write_aliases(tx, project)
        if project.path is not None:
            projects.add_binding(tx, self._owner, "path", project.path, project.scope)
        memories.audit(tx, self._owner, "user", "project.add", project.id, "added")
        return project

    def _scope(self, tx: Transaction, project_id: str) -> str:
        base = f"proj.{self._label}.{project_id.replace('-', '_')}"
        path, number = base, 2
        while projects.scope_exists(tx, path):
            path, number = f"{base}_{number}", number + 1
        return path

    def _write_aliases(self, tx: Transaction, project: Project) -> None:
        pairs = [(name_key(alias), alias) for alias in project.aliases]
        projects.set_aliases(tx, self._owner, project.id, pairs)

    async def edit(self, named: str, changes: ProjectChanges) -> Project:
        """Change a registered project; its id, scope, memories and sessions stay.

        Raises:
            NotFound, InvalidInput, Conflict, SecretRefused: as `find` and `add`.
        """
        return await self._store.write(
            lambda tx: self._edit(tx, self._find(tx, named, retired=True), changes)
        )

    def _edit(self, tx: Transaction, old: Project, changes: ProjectChanges) -> Project:
        name = old.name if changes.name is None else _name(changes.name)
        path = old.path
        if changes.path is not None:
            path = resolved_folder(Path(changes.path)) if changes.path else None
        aliases = old.aliases if changes.aliases is None else changes.aliases
        new = replace(
            old,
            name=name,
            description=old.description
            if changes.description is None
            else _description(changes.description),
            aliases=_aliases(aliases, name, old.id),
            path=path,
            harness=old.harness if changes.harness is None else changes.harness or None,
            protected=old.protected if changes.protected is None else changes.protected,
            retired=old.retired if changes.retired is None else changes.retired,
        )
        if new == old:
            return old
        everyone = projects.list_projects(tx, self._owner, retired=True)
        _check_free(new, [each for each in everyone if each.id != old.id])
        projects.update_project(tx, self._owner, new, name_key(new.name))
        self._write_aliases(tx, new)
        if new.path is not None and new.path != old.path:
            projects.move_binding(tx, self._owner, "path", new.path, new.scope)
        memories.audit(tx, self._owner, "user", "project.edit", new.id, "changed")
        return new

    async def retire(self, named: str) -> Project:
        """No message goes there any more; memories, sessions and history stay."""
        return await self.edit(named, ProjectChanges(retired=True))

    async def sync(self, configured: Iterable[NewProject]) -> None:
        """Add and update the projects of the configuration by id; nothing is ever removed.

        Writes only when something differs, so that every start is not a write.
        """
        wanted = list(configured)

        def differs(tx: Transaction) -> bool:
            known = {each.id: each for each in self._everyone(tx)}
            return any(self._sync_one(tx, each, known, write=False) for each in wanted)

        def adopt(tx: Transaction) -> None:
            known = {each.id: each for each in self._everyone(tx)}
            for each in wanted:
                self._sync_one(tx, each, known, write=True)

        different: bool = await self._store.read(differs)
        if different:
            await self._store.write(adopt)

    def _sync_one(
        self, tx: Transaction, new: NewProject, known: dict[str, Project], *, write: bool
    ) -> bool:
        """Add or update one project; `known` follows. Whether anything differs."""
        assert new.id is not None
        old = known.get(new.id)
        if old is None:
            if write:
                known[new.id] = self._add(tx, new, list(known.values()))
            return True
        path = resolved_folder(new.path) if new.path is not None else ""
        changes = ProjectChanges(
            name=new.name,
            description=new.description,
            aliases=new.aliases,
            path=path,
            harness=new.harness or "",
            protected=new.protected,
        )
        now = ProjectChanges(
            name=old.name,
            description=old.description,
            aliases=old.aliases,
            path=old.path or "",
            harness=old.harness or "",
            protected=old.protected,
        )
        wanted = replace(
            changes,
            name=_name(new.name),
            description=_description(new.description),
            aliases=_aliases(new.aliases, new.name, new.id),
        )
        if wanted == now:
            return False
        if write:
            known[new.id] = self._edit(tx, old, changes)
        return True


def resolved_folder(path: Path) -> str:
    """The real path of an existing folder.

    Raises:
        InvalidInput: it is no folder, or one that can never be a project (home, /, temp).
        SecretRefused: its path holds a credential.
    """
    try:
        real = path.expanduser().resolve()
        is_folder = real.is_dir()
    except (OSError, RuntimeError, ValueError) as error:
        raise InvalidInput(f"the folder {str(path)!r} cannot be used: {error}") from error
    if not is_folder:
        raise InvalidInput(f"there is no folder {real}; nothing was registered")
    if real in (Path.home().resolve(), Path(real.anchor), Path("/tmp").resolve()):  # noqa: S108
        raise InvalidInput(f"{real} cannot be a project: everything lies below it")
    found = unicodedata.normalize("NFC", str(real))
    refuse_secrets(found, "path")
    return found


def slug(name: str) -> str:
    """A name as an id: `My App` -> `my_app`; a wholly non-Latin name -> `p_` + 8 hex digits."""
    folded = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    found = re.sub(r"[^a-z0-9]+", "_", folded.removesuffix(".git")).strip("_")[:48]
    if not found:
        return "p_" + hashlib.sha256(name_key(name).encode()).hexdigest()[:8]
    return found


@lru_cache(maxsize=8192)
def _keys(project: Project) -> frozenset[str]:
    return frozenset(name_key(each) for each in (project.id, project.name, *project.aliases))


def _check_free(project: Project, others: Sequence[Project]) -> None:
    mine = _keys(project)
    for other in others:
        if shared := mine & _keys(other):
            state = " (retired)" if other.retired else ""
            raise Conflict(
                f"{sorted(shared)[0]!r} is already a name of project {other.name}{state} "
                f"({other.id}); nothing was changed",
                existing=other.id,
            )
        if project.path is not None and project.path == other.path and not other.retired:
            raise Conflict(
                f"{project.path} belongs to project {other.name} ({other.id}) already",
                existing=other.id,
            )


def _unknown(named: str, known: Sequence[Project]) -> NotFound:
    names = {name: each for each in known for name in (each.id, each.name, *each.aliases)}
    close = difflib.get_close_matches(named.lower(), [*names], n=3, cutoff=0.6)
    ids = list(dict.fromkeys(names[each].id for each in close)) or [each.id for each in known]
    shown = ", ".join(ids[:20]) if ids else "none is registered; `isola projects add` does that"
    return NotFound(
        f"there is no project {safe_label(named, 60)!r}. Projects: {shown}", candidates=ids
    )


def _name(text: str) -> str:
    name = " ".join(normalise_message(text).split())
    if is_blank(name) or not name_key(name):
        raise InvalidInput("a project needs a name")
    if len(name) > NAME_LIMIT:
        raise InvalidInput(f"the name has {len(name)} characters, at most {NAME_LIMIT} fit")
    refuse_secrets(name, "name")
    return name


def _description(text: str) -> str:
    description = normalise_message(text).strip()
    if len(description) > DESCRIPTION_LIMIT:
        raise InvalidInput(
            f"the description has {len(description)} characters, at most {DESCRIPTION_LIMIT} fit"
        )
    refuse_secrets(description, "description")
    return description


def _aliases(aliases: Sequence[str], name: str, project_id: str) -> tuple[str, ...]:
    found: dict[str, str] = {}
    own = {name_key(name), name_key(project_id)}
    for each in aliases:
        alias = " ".join(normalise_message(each).split())
        key = name_key(alias)
        if not key or len(alias) > ALIAS_LIMIT:
            raise InvalidInput(f"an alias has 1 to {ALIAS_LIMIT} characters, not {each[:80]!r}")
        refuse_secrets(alias, "alias")
        if key not in own:
            found.setdefault(key, alias)
    return tuple(sorted(found.values()))


def _new_id(wanted: str | None, name: str, taken: set[str]) -> str:
    if wanted is not None:
        if not ID_PATTERN.match(wanted):
            raise InvalidInput(
                f"{wanted!r} cannot be an id: 1 to 63 of a-z, 0-9, _ and -, the first a-z or 0-9"
            )
        if wanted in taken:
            raise Conflict(f"there is a project with the id {wanted} already", existing=wanted)
        return wanted
    base = slug(name)
    found, number = base, 2
    while found in taken:
        found, number = f"{base}_{number}", number + 1
    return found
