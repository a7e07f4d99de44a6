"""Scope paths and the read sets made of them.

`proj.<owner>.<slug>` is a project's home, `user.<owner>` the person's root and `user.<owner>.core`
what holds everywhere. The owner stands in a path as one label.
"""

from __future__ import annotations

from isola_core.model import Project, ReadSet


def project_read_set(owner: str, label: str, project: Project) -> ReadSet:
    """What work on one project may see: the project, the person's root and core. Nothing else."""
    return ReadSet(owner, (project.scope, f"user.{label}", f"user.{label}.core"))
