"""The judges that ask somebody else: an endpoint, a command-line program, or the person.

Each stands behind core's `JudgeModel`. Refused, late, malformed or empty answers raise `JudgeError`
with a text for people; a key is in none of them.
"""

from __future__ import annotations

import asyncio
import ipaddress
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from isola_core.config import (
    CliJudgeConfig,
    JudgeConfig,
    LocalJudgeConfig,
    ManualJudgeConfig,
    OpenAICompatJudgeConfig,
)
from isola_core.errors import ConfigError, JudgeError
from isola_core.ports import Judgement, JudgeModel, JudgeQuestion
from isola_core.secrets import mask
from isola_core.text import safe_label
from isola_harnesses.judge_prompt import build_prompt, objects_in, read_answer
from isola_harnesses.one_shot import Ending, Limits, OneShot, Outcome
from isola_harnesses.surroundings import without_surroundings

if TYPE_CHECKING:
    import httpx

_CONNECT_S: Final = 10.0
_MAX_BODY: Final = 512 * 1024
_MAX_OUTPUT: Final = 256 * 1024
_GRACE_S: Final = 1.0


def create_judge(config: JudgeConfig, env: Mapping[str, str]) -> JudgeModel | None:
    """The judge that a configuration names; None for the local one, which lives in core.

    `env` holds the API key under the configured name, and is what a program is started with.

    Raises:
        ConfigError: the command of a `cli` judge is empty.
    """
    match config:
        case LocalJudgeConfig():
            return None
        case ManualJudgeConfig():
            return ManualJudge()
        case OpenAICompatJudgeConfig():
            return OpenAICompatJudge(
                config.base_url,
                config.model,
                api_key=env.get(config.api_key_env, "") if config.api_key_env else "",
                api_key_env=config.api_key_env or "",
                timeout_s=config.timeout_s,
            )
        case CliJudgeConfig():
            return CliJudge(
                config.command, env=env, timeout_s=config.timeout_s, prompt=config.prompt
            )


class ManualJudge:
    """Proposes nothing: every message that the rules cannot place becomes a card."""

    name = "manual"

    async def judge(self, question: JudgeQuestion) -> Judgement:
        """No candidates, no decision."""
        return Judgement((), decides=False, reason="the judge is set to manual: you choose")

    async def close(self) -> None:
        """Nothing to let go of."""


class OpenAICompatJudge:
    """Asks any OpenAI-compatible endpoint for one completion a question."""

    name = "openai_compat"

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str = "",
        api_key_env: str = "",
        timeout_s: float = 20.0,
    ) -> None:
        """`base_url` ends before `/chat/completions`; `timeout_s` bounds a whole question.

        `api_key_env` is the name of the variable the key came from: error texts name it.
        """
        self._url = base_url.rstrip("/") + "/chat/completions"
        self._model = model
        self._key = api_key.strip()
        self._key_env = api_key_env
        self._timeout_s = timeout_s
        self._client: httpx.AsyncClient | None = None

    async def judge(self, question: JudgeQuestion) -> Judgement:
        """Ask once. Raises `JudgeError` for anything but a well-formed answer in time."""
        if self._key_env and not self._key:
            raise JudgeError(f"the judge needs a key: set the environment variable {self._key_env}")
        if not self._key.isascii() or not self._key.isprintable():
            raise JudgeError(f"the key in {self._key_env} has characters that no key has")
        import httpx

        try:
            async with asyncio.timeout(self._timeout_s):
                status, body = await self._ask(question)
        except TimeoutError:
            raise JudgeError(f"the judge did not answer within {self._timeout_s:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            kind = type(error).__name__
            raise JudgeError(f"the judge's endpoint cannot be reached ({kind})") from None
        if status != 200:
            raise JudgeError(self._refusal(status))
        return read_answer(_content(body), question)

    async def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _ask(self, question: JudgeQuestion) -> tuple[int, bytes]:
        prompt = build_prompt(question)
        request = {
            "model": self._model,
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": prompt.user},
            ],
            "temperature": 0,
            "stream": False,
        }
        headers = {"user-agent": "isola"}
        if self._key:
            headers["authorization"] = f"Bearer {self._key}"
        client = self._open_client()
        async with client.stream("POST", self._url, json=request, headers=headers) as response:
            body = b""
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _MAX_BODY:
                    raise JudgeError("the judge's answer is far too long")
            return response.status_code, body

    def _open_client(self) -> httpx.AsyncClient:
        """The one client, made late: loading certificates takes a tenth of a second."""
        import httpx

        if self._client is None:
            self._client = httpx.AsyncClient(
                timeout=httpx.Timeout(self._timeout_s, connect=min(_CONNECT_S, self._timeout_s)),
                follow_redirects=False,
                trust_env=not _is_loopback(httpx.URL(self._url).host),
            )
        return self._client

    def _refusal(self, status: int) -> str:
        match status:
            case 401 | 403:
                where = f"the key in {self._key_env}" if self._key_env else "api_key_env"
                return f"the judge's endpoint refused us ({status}); check {where}"
            case 404 | 405:
                return f"the judge's endpoint answered {status}; check base_url and model"
            case 429:
                return "the judge's endpoint takes no more requests right now (429)"
            case _ if 300 <= status < 400:
                return (
                    f"the judge's endpoint redirects ({status}); set base_url to the final address"
                )
            case _:
                return f"the judge's endpoint answered {status}"


def _content(body: bytes) -> str:
    """The text of a completion. Raises `JudgeError` for another body."""
    try:
        completion = msgspec.json.decode(body, type=_Completion)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise JudgeError(
            "the judge's endpoint answered with something else than a completion"
        ) from None
    if not completion.choices:
        raise JudgeError("the judge's endpoint answered with an empty completion")
    return completion.choices[0].message.content or ""


class _Message(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Message


class _Completion(msgspec.Struct):
    choices: list[_Choice]


def _is_loopback(host: str) -> bool:
    """Whether a host is this machine: then no proxy of the environment may see the request."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class CliJudge:
    """Runs a program once a question and reads its standard output; never through a shell."""

    name = "cli"

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        env: Mapping[str, str],
        timeout_s: float = 60.0,
        prompt: Literal["stdin", "argument"] = "stdin",
        cwd: Path | None = None,
    ) -> None:
        """`command` is an argument list, or one line that is split as a shell would split it.

        The prompt goes to standard input, or becomes the last argument. The program runs in `cwd`
        (the home folder by default) with `env` less what belongs to other agents.

        Raises:
            ConfigError: the command is empty or its quotes do not close.
        """
        try:
            argv = shlex.split(command) if isinstance(command, str) else list(command)
        except ValueError as error:
            raise ConfigError(f"judge.command cannot be split: {error}") from None
        if not argv or not argv[0].strip() or any("\0" in each for each in argv):
            raise ConfigError("judge.command is empty")
        self._argv = argv
        self._env = without_surroundings(env)
        self._timeout_s = timeout_s
        self._as_argument = prompt == "argument"
        self._cwd = cwd
        self._program = safe_label(argv[0].rpartition("/")[2], 40)

    async def judge(self, question: JudgeQuestion) -> Judgement:
        """Run it once. Raises `JudgeError` for anything but a well-formed answer in time."""
        program = shutil.which(self._argv[0], path=self._env.get("PATH"))
        if program is None:
            raise JudgeError(f"the judge's program {self._program!r} is not found")
        prompt = build_prompt(question).whole()
        argv = [program, *self._argv[1:], *((prompt,) if self._as_argument else ())]
        given = b"" if self._as_argument else prompt.encode("utf-8", "replace")
        limits = Limits(self._timeout_s, grace_s=_GRACE_S, kept_bytes=_MAX_OUTPUT)
        run = OneShot(argv, self._cwd or Path.home(), self._env, given, limits)
        try:
            outcome = await run.run()
        except OSError as error:
            what = error.strerror or type(error).__name__
            raise JudgeError(f"the judge's program {self._program!r} cannot run: {what}") from None
        return self._read(outcome, question)

    async def close(self) -> None:
        """Nothing outlives a question."""

    def _read(self, outcome: Outcome, question: JudgeQuestion) -> Judgement:
        if outcome.ending is not Ending.EXITED:
            raise JudgeError(
                f"the judge's program {self._program!r} did not answer within {self._timeout_s:g} s"
            )
        output = outcome.stdout.bytes().decode("utf-8", "replace")
        wrapped = [each for each in objects_in(output) if each.get("type") == "result"]
        if wrapped and wrapped[-1].get("is_error"):
            raise JudgeError(f"the judge's program {self._program!r} reports an error")
        if outcome.status:
            raise JudgeError(
                f"the judge's program {self._program!r} ended with status {outcome.status}"
                + _last_line(outcome.stderr.bytes())
            )
        if wrapped:
            result = wrapped[-1].get("result")
            output = result if isinstance(result, str) else ""
        return read_answer(output, question, noisy=True)


def _last_line(output: bytes) -> str:
    """The last line of an error output, masked, or nothing."""
    lines = mask(output[-2_000:].decode("utf-8", "replace")).strip().splitlines()
    said = safe_label(lines[-1], 160) if lines else ""
    return f": {said}" if said else ""
