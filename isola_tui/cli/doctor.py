"""`isola doctor`: is everything ready? Each check with the command that fixes it; changes nothing.

Every part is looked at by itself: a configuration that cannot be read, a database that is not there
and an endpoint that is down each fail one check and hide no other.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import click

from isola_core.clock import SystemClock
from isola_core.config import Config, OpenAICompatJudgeConfig, load_config
from isola_core.doctor import (
    Check,
    CheckResult,
    CheckStatus,
    DoctorInputs,
    Outcome,
    ProjectFolder,
    StuckReport,
    Terminal,
    core_checks,
    exit_code,
    run_checks,
)
from isola_core.doctor.check import Supplier
from isola_core.errors import ConfigError, HarnessError, IsolaError
from isola_core.paths import Paths
from isola_core.ports import PastTurn, ProcessIdentity, SessionRef
from isola_core.processes import MACHINE_FILE, SystemProcesses
from isola_core.store.inspection import (
    project_folders,
    registered_projects,
    sqlite_report,
    store_report,
    stuck_report,
)
from isola_harnesses.claude.checks import claude_checks
from isola_harnesses.claude.environment import ClaudeSettings
from isola_harnesses.registry import HarnessServices, create_harness, inspect_types
from isola_harnesses.settings import read_settings
from isola_tui.cli.invocation import Invocation, print_json, with_invocation
from isola_tui.cli.output import line, show

PROBE_S: Final = 10.0
"""How long an endpoint may take to answer that it is there."""


@click.command(short_help="Check this installation; changes nothing.")
@with_invocation
def doctor(invocation: Invocation) -> int:
    """Check this installation: exit code 0 all well, 1 something fails, 2 a person must decide."""
    results = asyncio.run(run_checks(checks(invocation.config, os.environ)))
    code = exit_code(results)
    if invocation.json:
        print_json(
            {"ok": code == 0, "exit_code": code, "checks": [each.as_json() for each in results]}
        )
    else:
        _print(results)
    return code


def checks(config_file: Path | None, env: Mapping[str, str]) -> tuple[Check, ...]:
    """All checks of this installation, in the order in which a person would repair things."""
    paths = Paths.from_environment(env)
    try:
        config = load_config(config_file, paths=paths)
        problems = _screen_problems(config)
    except ConfigError as error:
        found = error.details.get("problems")
        config = Config()
        problems = [str(each) for each in found] if isinstance(found, list) else [error.message]
    database = config.store_path(paths)
    inputs = DoctorInputs(
        config_file=config_file or paths.config_file,
        data_dir=paths.data_dir,
        database=database,
        terminal=Terminal.of_this_process(),
        environ=env,
        config_problems=lambda: problems,
        key_names=config.key_names,
        projects=lambda: _folders(config, database),
        sqlite=sqlite_report,
        store=lambda: asyncio.to_thread(store_report, database),
        stuck=lambda: asyncio.to_thread(_stuck, database, paths),
        endpoints=_endpoints(config, env),
    )
    return (*core_checks(inputs), *_backend_checks(config, database, paths, env))


def _screen_problems(config: Config) -> list[str]:
    """What the screen would refuse; it is loaded only where there is anything to judge."""
    if not config.keys and config.theme is None:
        return []
    from isola_tui.bindings import screen_problems

    return screen_problems(config)


def _stuck(database: Path, paths: Paths) -> StuckReport:
    return stuck_report(database, SystemClock().now(), partial(_alive, paths))


def _alive(paths: Paths, process: ProcessIdentity) -> bool | None:
    """Whether a process lives; None where that would mean to give this machine a name first."""
    if not (paths.data_dir / MACHINE_FILE).exists():
        return None
    return SystemProcesses(paths.data_dir).alive(process)


def _folders(config: Config, database: Path) -> list[ProjectFolder]:
    """Folders of the projects in the database, and of those the configuration will add to it."""
    known = project_folders(database)
    ids = {each.id for each in known}
    return known + [
        ProjectFolder(each.id, each.name or each.id, each.path)
        for each in config.projects
        if each.path is not None and each.id not in ids
    ]


# -- endpoints


def _endpoints(config: Config, env: Mapping[str, str]) -> dict[str, Supplier[str]]:
    found: dict[str, Supplier[str]] = {}
    judge = config.judge
    if isinstance(judge, OpenAICompatJudgeConfig):
        found["judge"] = partial(_probe, judge.base_url, judge.model, judge.api_key_env, env)
    sections = {"harness": config.harness}
    sections |= {f"harnesses.{name}": each for name, each in config.harnesses.items()}
    for name, each in sections.items():
        base_url = each.settings.get("base_url")
        if each.type == "llm" and isinstance(base_url, str):
            key = each.settings.get("api_key_env")
            model = str(each.settings.get("model"))
            found[name] = partial(_probe, base_url, model, str(key) if key else None, env)
    return found


async def _probe(base_url: str, model: str, key_name: str | None, env: Mapping[str, str]) -> str:
    """Ask an endpoint for its models: nothing is sent to a model.

    Raises:
        HarnessError: it does not answer, or refuses.
    """
    import httpx  # only here: most installations have no endpoint

    url = f"{base_url.rstrip('/')}/models"
    key = env.get(key_name, "").strip() if key_name else ""
    headers = {"authorization": f"Bearer {key}"} if key else {}
    try:
        async with httpx.AsyncClient(timeout=PROBE_S, trust_env=False) as client:
            response = await client.get(url, headers=headers)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise HarnessError(f"{url} does not answer: {type(error).__name__} {error}") from error
    if response.status_code in (401, 403):
        raise HarnessError(f"{url} refuses the key ({response.status_code})")
    if response.status_code >= 500:
        raise HarnessError(f"{url} answers {response.status_code}")
    if response.status_code != 200:
        return f"{url} answers {response.status_code}; it lists no models, so {model} is unchecked"
    return f"{url} answers; {_listed(response.text, model)}"


def _listed(body: str, model: str) -> str:
    import json

    try:
        names = [str(each["id"]) for each in json.loads(body)["data"]]
    except (ValueError, KeyError, TypeError):
        return f"its list of models cannot be read, so {model} is unchecked"
    if model in names:
        return f"it has {model}"
    return f"it does not list {model}, but {', '.join(names[:10]) or 'nothing'}"


# -- backends


def _backend_checks(
    config: Config, database: Path, paths: Paths, env: Mapping[str, str]
) -> tuple[Check, ...]:
    names = ["default", *config.harnesses]
    served = partial(_served_by_claude, config, database)
    return (
        Check("plugins", "Every kind of backend can be loaded", _look_at_types, "pip list"),
        *(
            Check(
                f"backend.{name}",
                f"The backend {name} can be used",
                partial(_look_at_backend, config, name, paths, env),
            )
            for name in names
        ),
        Check(
            "project-backends",
            "Every project's backend is configured",
            lambda: _look_at_choices(config, database),
            "isola projects list",
        ),
        *(
            replace(each, id=f"{each.id}.{name}")
            for name, settings in _claude_settings(config).items()
            for each in claude_checks(settings, env, partial(served, name))
        ),
    )


def _claude_settings(config: Config) -> dict[str, ClaudeSettings]:
    """The backends that are Claude Code; wrong settings are told by the backend's own check."""
    found = {}
    for name in ("default", *config.harnesses):
        settings = dict(config.harness_settings(name))
        if settings.pop("type") == "claude":
            with suppress(ConfigError):
                found[name] = read_settings(ClaudeSettings, settings, "the claude harness")
    return found


def _served_by_claude(config: Config, database: Path, name: str) -> list[ProjectFolder]:
    chosen = {each.id: each.harness for each in config.projects}
    chosen |= {each.id: each.harness for each in registered_projects(database)}
    return [
        each for each in _folders(config, database) if (chosen.get(each.id) or "default") == name
    ]


def _look_at_types() -> Outcome:
    types = inspect_types()
    broken = [each for each in types if each.problem]
    if broken:
        found = "; ".join(each.problem for each in broken)
        return Outcome(CheckStatus.FAIL, found, f"pip uninstall {broken[0].source}")
    return Outcome(CheckStatus.PASS, ", ".join(each.name for each in types))


class _NoHistory:
    async def turns(self, session: SessionRef) -> Sequence[PastTurn]:
        return ()


async def _look_at_backend(
    config: Config, name: str, paths: Paths, env: Mapping[str, str]
) -> Outcome:
    settings = config.harness_settings(name)
    kind = str(settings["type"])
    try:
        services = HarnessServices(_NoHistory(), SystemClock(), env, paths.state_dir)
        await create_harness(settings, name, services).close()
    except IsolaError as error:
        return Outcome(CheckStatus.NEED_HUMAN, error.message, "${EDITOR:-vi} config.yaml")
    program = None if kind == "claude" else _program(settings)
    if program is None:
        return Outcome(CheckStatus.PASS, kind)
    where = shutil.which(program, path=env.get("PATH"))
    if where is None:
        found = f"{kind}: there is no program {program} on PATH"
        return Outcome(CheckStatus.FAIL, found, f"command -v {program}")
    return Outcome(CheckStatus.PASS, f"{kind}: {where}")


def _program(settings: Mapping[str, object]) -> str | None:
    """The program that a backend starts, where its settings say so; Claude Code has own checks."""
    match settings.get("binary"), settings.get("argv"):
        case str() as binary, _:
            return binary
        case _, [str() as first, *_]:
            return first
        case _:
            return None


def _look_at_choices(config: Config, database: Path) -> Outcome:
    known = {"default", *config.harnesses}
    wrong = [
        each
        for each in registered_projects(database)
        if each.harness and each.harness not in known and not each.retired
    ]
    if wrong:
        found = ", ".join(f"{each.name} uses {each.harness}" for each in wrong)
        return Outcome(
            CheckStatus.FAIL,
            f"{found}; the configuration has {', '.join(sorted(known))}",
            f"isola projects edit {wrong[0].id} --harness default",
        )
    return Outcome(CheckStatus.PASS, "all of them")


def _print(results: Sequence[CheckResult]) -> None:
    marks = {
        CheckStatus.PASS: "ok  ",
        CheckStatus.FAIL: "FAIL",
        CheckStatus.NEED_HUMAN: "you ",
    }
    for each in results:
        show(f"{marks[each.status]}  {each.title}: {line(each.found, 600)}")
        if each.status is not CheckStatus.PASS:
            show(f"      look: {line(each.check_command, 300)}")
            show(f"      fix:  {line(each.fix_command, 300)}")
    bad = sum(each.status is CheckStatus.FAIL for each in results)
    asks = sum(each.status is CheckStatus.NEED_HUMAN for each in results)
    if bad or asks:
        show(f"{bad} failed, {asks} for you to decide")
    else:
        show("all well")
