"""Statements about owners, scopes, projects, aliases and bindings."""

from __future__ import annotations

from collections.abc import Sequence

from isola_core.model import Project
from isola_core.store.search import create_index
from isola_core.store.transaction import Row, Transaction


def local_owner(tx: Transaction) -> tuple[str, str] | None:
    """(id, scope label) of the person whose store this is, None in a new database."""
    row = tx.one(
        "SELECT o.id, o.label FROM meta AS m JOIN owners AS o ON o.id = m.value "
        "WHERE m.key = 'local_owner'"
    )
    return (row["id"], row["label"]) if row else None


def add_owner(tx: Transaction, owner: str, label: str) -> None:
    """The person whose store this is, with the personal root and core scopes."""
    tx.run("INSERT INTO owners (id, label, created) VALUES (?, ?, ?)", owner, label, tx.now)
    tx.run("INSERT INTO meta (key, value) VALUES ('local_owner', ?)", owner)
    add_scope(tx, f"user.{label}", "personal", owner)
    add_scope(tx, f"user.{label}.core", "core", owner)


def add_machine(tx: Transaction, machine: str, name: str) -> None:
    """Register this machine once."""
    tx.run(
        "INSERT OR IGNORE INTO machines (id, name, created) VALUES (?, ?, ?)", machine, name, tx.now
    )


def add_scope(tx: Transaction, path: str, kind: str, owner: str) -> None:
    """A new scope with its own search index; its creator administers it."""
    tx.run(
        "INSERT INTO scopes (path, kind, owner, created) VALUES (?, ?, ?, ?)",
        path,
        kind,
        owner,
        tx.now,
    )
    row = tx.one("SELECT seq FROM scopes WHERE path = ?", path)
    assert row is not None
    create_index(tx, row["seq"])
    tx.run(
        "INSERT INTO scope_members (scope, owner, role, granted, accepted) "
        "VALUES (?, ?, 'admin', ?, ?)",
        path,
        owner,
        tx.now,
        tx.now,
    )


def scope_exists(tx: Transaction, path: str) -> bool:
    """Whether somebody has created this scope."""
    return tx.one("SELECT 1 AS found FROM scopes WHERE path = ?", path) is not None


def list_projects(tx: Transaction, owner: str, *, retired: bool = False) -> list[Project]:
    """The owner's projects in order of registration; retired ones only when asked for."""
    aliases: dict[str, list[str]] = {}
    for row in tx.all("SELECT project, alias FROM aliases WHERE owner = ? ORDER BY alias", owner):
        aliases.setdefault(row["project"], []).append(row["alias"])
    rows = tx.all(
        "SELECT * FROM projects WHERE owner = ? AND retired <= ? ORDER BY created, id",
        owner,
        int(retired),
    )
    return [_project(row, tuple(aliases.get(row["id"], ()))) for row in rows]


def find_project(tx: Transaction, owner: str, project: str) -> Project | None:
    """One project by its id, retired or not."""
    row = tx.one("SELECT * FROM projects WHERE owner = ? AND id = ?", owner, project)
    if row is None:
        return None
    names = tx.all(
        "SELECT alias FROM aliases WHERE owner = ? AND project = ? ORDER BY alias", owner, project
    )
    return _project(row, tuple(each["alias"] for each in names))


def _project(row: Row, aliases: tuple[str, ...]) -> Project:
    return Project(
        id=row["id"],
        name=row["name"],
        scope=row["scope"],
        description=row["description"],
        aliases=aliases,
        path=row["path"],
        harness=row["harness"],
        listed=bool(row["listed"]),
        protected=bool(row["protected"]),
        retired=bool(row["retired"]),
    )


def add_binding(tx: Transaction, owner: str, kind: str, key: str, scope: str) -> None:
    """Bind a path or a remote to a scope; an existing binding stays as it is."""
    tx.run(
        "INSERT OR IGNORE INTO bindings (owner, kind, key, scope, created) VALUES (?, ?, ?, ?, ?)",
        owner,
        kind,
        key,
        scope,
        tx.now,
    )


def move_binding(tx: Transaction, owner: str, kind: str, key: str, scope: str) -> None:
    """The person changed a project's folder: its scope loses the old key and gains the new one."""
    tx.run(
        "DELETE FROM bindings WHERE owner = ? AND kind = ? AND (scope = ? OR key = ?)",
        owner,
        kind,
        scope,
        key,
    )
    add_binding(tx, owner, kind, key, scope)


def insert_project(tx: Transaction, owner: str, project: Project, name_key: str) -> None:
    """A new project; its scope exists already."""
    tx.run(
        "INSERT INTO projects (id, owner, scope, name, name_key, description, path, harness, "
        "listed, protected, retired, created, updated) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        project.id,
        owner,
        project.scope,
        project.name,
        name_key,
        project.description,
        project.path,
        project.harness,
        int(project.listed),
        int(project.protected),
        int(project.retired),
        tx.now,
        tx.now,
    )
    _touched(tx, project.id)


def update_project(tx: Transaction, owner: str, project: Project, name_key: str) -> None:
    """Write every editable field of a project."""
    tx.run(
        "UPDATE projects SET name = ?, name_key = ?, description = ?, path = ?, harness = ?, "
        "listed = ?, protected = ?, retired = ?, updated = ? WHERE owner = ? AND id = ?",
        project.name,
        name_key,
        project.description,
        project.path,
        project.harness,
        int(project.listed),
        int(project.protected),
        int(project.retired),
        tx.now,
        owner,
        project.id,
    )
    _touched(tx, project.id)


def set_aliases(
    tx: Transaction, owner: str, project: str, aliases: Sequence[tuple[str, str]]
) -> None:
    """Replace a project's aliases by these (key, alias) pairs."""
    tx.run("DELETE FROM aliases WHERE owner = ? AND project = ?", owner, project)
    for key, alias in aliases:
        tx.run(
            "INSERT INTO aliases (owner, alias_key, alias, project) VALUES (?, ?, ?, ?)",
            owner,
            key,
            alias,
            project,
        )
    _touched(tx, project)


def _touched(tx: Transaction, project: str) -> None:
    bump_version(tx, "projects_version")
    tx.changed("project", project)


def bump_version(tx: Transaction, name: str) -> None:
    """Tell every process that what it keeps in memory under this name is old."""
    tx.run(
        "INSERT INTO meta (key, value) VALUES (?, '1') "
        "ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1",
        name,
    )


def version(tx: Transaction, name: str) -> int:
    """The current version under this name, 0 before the first bump."""
    row = tx.one("SELECT value FROM meta WHERE key = ?", name)
    return int(row["value"]) if row else 0
