"""What the readiness checks find, and that no credential is ever in what they say."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from isola_core.doctor import CheckStatus, ProjectFolder, run_checks
from isola_harnesses.claude.checks import (
    claude_checks,
    look_at_login,
    look_at_notes,
    look_at_trust,
    notes_root,
)
from isola_harnesses.claude.environment import ClaudeSettings
from tests.harnesses.claude.conftest import MakeDesk

SECRET = "sk-ant-0123456789abcdefghij"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / ".claude").mkdir()
    return {"HOME": str(tmp_path)}


def folder(path: Path) -> ProjectFolder:
    path.mkdir(parents=True, exist_ok=True)
    return ProjectFolder(f"p-{path.name}", path.name, path)


async def test_all_checks_run_and_name_their_commands(make_desk: MakeDesk) -> None:
    desk = make_desk()
    checks = claude_checks(ClaudeSettings(), desk.env, lambda: [folder(desk.cwd)])
    results = {each.id: each for each in await run_checks(checks)}
    assert list(results) == ["claude", "claude-login", "claude-trust", "claude-notes"]
    assert results["claude"].status is CheckStatus.PASS
    assert "9.9.9 (Fake Code)" in results["claude"].found
    assert results["claude-login"].status is CheckStatus.FAIL
    assert results["claude-login"].fix_command == "claude auth login"
    assert all(each.check_command for each in results.values())


async def test_a_missing_program_is_a_failed_check(env: dict[str, str]) -> None:
    checks = claude_checks(ClaudeSettings(binary="no-such-claude"), env, lambda: [])
    first = (await run_checks(checks))[0]
    assert first.status is CheckStatus.FAIL
    assert "no-such-claude" in first.found
    assert "npm install" in first.found
    assert first.fix_command == "npm install -g @anthropic-ai/claude-code"


def make_program(folder: Path, says: str) -> str:
    program = folder / "claude"
    program.write_text(f"#!/bin/sh\necho {shlex.quote(says)}\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize("says", ["2.1.197 (Claude Code)", "something else"])
async def test_an_untested_version_is_for_a_person(
    env: dict[str, str], tmp_path: Path, says: str
) -> None:
    settings = ClaudeSettings(binary=make_program(tmp_path, says))
    first = (await run_checks(claude_checks(settings, env, lambda: [])))[0]
    assert first.status is CheckStatus.NEED_HUMAN
    assert says in first.found


def test_a_login_is_found_and_not_told(env: dict[str, str], tmp_path: Path) -> None:
    settings = ClaudeSettings()
    assert look_at_login(settings, env).status is CheckStatus.FAIL
    with_key = look_at_login(settings, env | {"ANTHROPIC_API_KEY": SECRET})
    mapped = look_at_login(
        ClaudeSettings(env_from={"ANTHROPIC_AUTH_TOKEN": "WORK"}), env | {"WORK": SECRET}
    )
    cloud = look_at_login(settings, env | {"CLAUDE_CODE_USE_BEDROCK": "1"})
    (tmp_path / ".claude" / ".credentials.json").write_text(json.dumps({"token": SECRET}))
    stored = look_at_login(settings, env)
    for outcome in (with_key, mapped, cloud, stored):
        assert outcome.status is CheckStatus.PASS
        assert SECRET not in outcome.found


def test_folders_that_were_not_asked_about_are_named(env: dict[str, str], tmp_path: Path) -> None:
    billing, search = folder(tmp_path / "a" / "billing"), folder(tmp_path / "search")
    state = {"projects": {str(tmp_path / "a"): {"hasTrustDialogAccepted": True}}}
    (tmp_path / ".claude.json").write_text(json.dumps(state))
    assert look_at_trust(ClaudeSettings(), env, [billing]).status is CheckStatus.PASS
    outcome = look_at_trust(ClaudeSettings(), env, [billing, search])
    assert outcome.status is CheckStatus.NEED_HUMAN
    assert "search" in outcome.found
    assert "billing" not in outcome.found
    assert outcome.fix == f"cd {search.path} && claude"
    (tmp_path / ".claude.json").write_text("[broken")
    assert look_at_trust(ClaudeSettings(), env, [billing]).status is CheckStatus.NEED_HUMAN


def git(path: Path, *arguments: str) -> None:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    subprocess.run(command, cwd=path, check=True, capture_output=True)


def test_projects_of_one_repository_share_the_agents_notes(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    api, web = folder(repository / "api"), folder(repository / "web")
    nested, other = folder(repository / "nested"), folder(tmp_path / "other")
    for path in (repository, nested.path):
        git(path, "init", "-q")
    git(repository, "commit", "-q", "--allow-empty", "-m", "begin")
    git(repository, "worktree", "add", "-q", str(tmp_path / "tree"))
    tree = folder(tmp_path / "tree")

    assert notes_root(tree.path) == repository
    assert notes_root(nested.path) == nested.path
    assert notes_root(other.path) == other.path
    assert look_at_notes(ClaudeSettings(), [api, nested, other]).status is CheckStatus.PASS
    outcome = look_at_notes(ClaudeSettings(), [api, web, other, tree])
    assert outcome.status is CheckStatus.NEED_HUMAN
    assert outcome.found == f"api, web, tree share the notes of {repository}"
    assert "auto_memory" in outcome.fix
    off = look_at_notes(ClaudeSettings(auto_memory=False), [api, web])
    assert off.status is CheckStatus.PASS
