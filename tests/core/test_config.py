"""Every wrong key and value of the configuration is named, and nothing else ever comes out."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isola_core.config import (
    CliJudgeConfig,
    Config,
    HarnessConfig,
    LocalJudgeConfig,
    ManualJudgeConfig,
    OpenAICompatJudgeConfig,
    ProjectConfig,
    StoreConfig,
    load_config,
    write_config,
)
from isola_core.config.settings import LlmKeys
from isola_core.errors import ConfigError, Conflict
from isola_core.model import Project
from isola_core.paths import Paths
from isola_harnesses.llm import LlmSettings

KEY = "sk-" + "ant-api03-AAAA1111BBBB2222CCCC"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def problems(file: Path, text: str | bytes) -> list[str]:
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as refusal:
        load_config(file)
    found = refusal.value.details["problems"]
    assert isinstance(found, list)
    assert refusal.value.message == "\n".join(found)
    assert all(each.startswith("config.yaml: ") and "\n" not in each for each in found)
    return [each.removeprefix("config.yaml: ") for each in found]


def load(file: Path, text: str) -> Config:
    file.write_text(text, "utf-8")
    return load_config(file)


def test_without_a_file_the_defaults_need_no_key_and_no_agent(tmp_path: Path) -> None:
    config = load_config(paths=Paths.below(tmp_path))
    assert config == Config()
    assert config.judge_is_local
    assert config.harness_settings("default") == {"type": "notebook"}
    assert config.store_path(Paths.below(tmp_path)) == tmp_path / "isola.db"
    assert config.key_names() == {}
    assert [*tmp_path.iterdir()] == []


def test_the_default_place_is_read_where_it_exists(file: Path) -> None:
    file.write_text("auto_at: 0.8")
    assert load_config(paths=Paths.below(file.parent)).auto_at == 0.8


def test_a_file_that_was_named_and_is_missing_is_an_error(file: Path) -> None:
    with pytest.raises(ConfigError, match="isola init"):
        load_config(file)


def test_a_symlink_that_leads_nowhere_is_an_error_and_no_default(file: Path) -> None:
    file.symlink_to("gone.yaml")
    with pytest.raises(ConfigError, match="there is no file"):
        load_config(paths=Paths.below(file.parent))


def test_the_whole_contract_is_read(file: Path) -> None:
    config = load(
        file,
        """
judge: {type: openai_compat, base_url: http://127.0.0.1:11434/v1, model: qwen3,
        api_key_env: JUDGE_KEY, timeout_s: 5}
harness:
  type: llm
  base_url: https://api.deepseek.com
  model: deepseek-chat
  api_key_env: DEEPSEEK_KEY
harnesses:
  work: {type: claude, binary: claude, env_from: {ANTHROPIC_API_KEY: WORK_KEY}}
  notes: notebook
  mine: {type: my-plugin, anything: [1, {b: c}]}
store: {path: data/isola.db}
isolation_s: 60
auto_at: 1
inertia_s: 0
language: zh
theme: light
mouse: false
keys:
  why: f2, Ctrl+X
  hold: [ctrl+k]
projects:
  - id: billing
    name: 账单
    description: Invoices and dunning
    aliases: [invoices, 计费]
    path: ~/src/billing
    harness: work
    protected: true
    lanes: [review]
  - {id: search, path: ../search}
""",
    )
    assert config.judge == OpenAICompatJudgeConfig(
        base_url="http://127.0.0.1:11434/v1", model="qwen3", api_key_env="JUDGE_KEY", timeout_s=5.0
    )
    assert config.harness_settings("default")["model"] == "deepseek-chat"
    assert config.harness_settings("notes") == {"type": "notebook"}
    assert config.harness_settings("mine") == {"type": "my-plugin", "anything": [1, {"b": "c"}]}
    assert config.store.path == file.parent / "data" / "isola.db"
    billing, search = config.projects
    assert billing.path == Path("~/src/billing").expanduser()
    assert search == ProjectConfig(id="search", path=file.parent.parent / "search")
    assert (billing.name, billing.aliases, billing.lanes) == (
        "账单",
        ("invoices", "计费"),
        ("review",),
    )
    assert (config.theme, config.mouse) == ("light", False)
    assert config.keys == {"why": ("f2", "ctrl+x"), "hold": ("ctrl+k",)}
    assert config.key_names() == {"JUDGE_KEY": "judge", "DEEPSEEK_KEY": "harness"}


@pytest.mark.parametrize(
    ("text", "judge"),
    [
        ("judge: manual", ManualJudgeConfig()),
        ("judge: {type: manual}", ManualJudgeConfig()),
        ("judge: local", LocalJudgeConfig()),
        ('judge: {type: cli, command: "claude -p"}', CliJudgeConfig(command=("claude", "-p"))),
        (
            "judge: {type: cli, command: [claude, -p, 'a b'], prompt: argument, timeout_s: 1.5}",
            CliJudgeConfig(command=("claude", "-p", "a b"), prompt="argument", timeout_s=1.5),
        ),
    ],
)
def test_a_judge_is_read(file: Path, text: str, judge: object) -> None:
    assert load(file, text).judge == judge


def test_a_project_without_a_harness_uses_the_default_one(file: Path) -> None:
    config = load(file, "harnesses: {b: notebook}")
    project = Project(id="a", name="a", scope="s")
    assert config.harness_of(project) == "default"
    with pytest.raises(ConfigError, match="did you mean b"):
        config.harness_settings("bb")


PROBLEMS = [
    ("judge: {type: cli, command: x, timeout_s: soon}",
     "judge.timeout_s: expected a number of seconds from 0.1 to 600, got 'soon'"),
    ("judge: {type: cli, command: x, timeout_s: 0}",
     "judge.timeout_s: expected a number of seconds from 0.1 to 600, got 0"),
    ("jugde: manual",
     "jugde: unknown key; did you mean judge? Allowed: auto_at, harness, harnesses, inertia_s, "
     "isolation_s, judge, keys, language, mouse, projects, store, theme"),
    ("judge: {type: manuel}",
     "judge.type: did you mean manual? Expected one of local, openai_compat, cli, manual, got "
     "'manuel'"),
    ("judge: {type: manual, model: x}", "judge.model: unknown key; Allowed: type"),
    ("judge: {}", "judge.type: missing; one of local, openai_compat, cli, manual"),
    ("judge: [a]", "judge: expected keys and values, got a list"),
    ("judge: {type: cli}", "judge.command: missing; expected a list, each text"),
    ("judge: {type: cli, command: ''}",
     'judge.command: expected a program and its arguments, such as "claude -p" or [claude, -p], '
     "got ''"),
    ("judge: {type: cli, command: [claude, 3]}",
     'judge.command: expected a program and its arguments, such as "claude -p" or [claude, -p], '
     "got a list"),
    ("judge: {type: cli, command: \"claude 'x\"}",
     "judge.command: a quote is not closed (no closing quotation)"),
    ("judge: {type: openai_compat, base_url: ftp://x, model: m}",
     "judge.base_url: expected an http or https address such as http://127.0.0.1:11434/v1, got "
     "'ftp://x'"),
    ("judge: {type: openai_compat, base_url: http://x, model: m, api_key_env: $KEY}",
     "judge.api_key_env: expected the name of an environment variable, such as OPENAI_API_KEY, "
     "got '$KEY'"),
    ("harness: {type: llm, base_url: http://x}", "harness.model: missing; expected the name of a model"),
    ("harness: {type: llm, base_url: http://x, model: m, max_context_tokens: 1.5}",
     "harness.max_context_tokens: expected a whole number from 256 to 10000000, got 1.5"),
    ("harness: {type: notebook, model: m}", "harness.model: unknown key; Allowed: type"),
    ("harness: {binary: x}", "harness.type: missing; one of notebook, llm, claude"),
    ("harnesses: {default: notebook}",
     "harnesses.default: this name means the harness of `harness:`, use another one"),
    ("harnesses: {a: {type: llm, base_url: x, model: y}}",
     "harnesses.a.base_url: expected an http or https address such as http://127.0.0.1:11434/v1, "
     "got 'x'"),
    ("harnesses: [a]", "harnesses: expected names and their harnesses, got a list"),
    ("store: x.db", "store: expected keys and values, got 'x.db'"),
    ("store: {path: 3}", "store.path: expected a path, got 3"),
    ("store: {path: ''}", "store.path: expected a path, got ''"),
    ("isolation_s: -1", "isolation_s: expected a number of seconds from 0 to 604800, got -1"),
    ("isolation_s:", "isolation_s: expected a number of seconds from 0 to 604800, got nothing"),
    ("isolation_s: .nan", "isolation_s: expected a number of seconds from 0 to 604800, got nan"),
    ("isolation_s: .inf", "isolation_s: expected a number of seconds from 0 to 604800, got inf"),
    ("auto_at: true", "auto_at: expected a number from 0.5 to 1, got true"),
    ("auto_at: 0.2", "auto_at: expected a number from 0.5 to 1, got 0.2"),
    ("keys: [ctrl+k]", "keys: expected acts and their keys, got a list"),
    ("keys: {why: 5}", "keys.why: expected a key such as ctrl+k, or a list of keys, got 5"),
    ("keys: {why: ''}", "keys.why: expected a key such as ctrl+k, or a list of keys, got ''"),
    ("keys: {why: [f2, 3]}", "keys.why: expected a key such as ctrl+k, or a list of keys, got a list"),
    ("theme: 5", "theme: expected the name of a theme, such as light, got 5"),
    ("mouse: maybe", "mouse: expected true or false, got 'maybe'"),
    ("language: fr", "language: expected en or zh, got 'fr'"),
    ("language: no", "language: expected en or zh, got false"),
    ("language: 2026-01-02", "language: expected en or zh, got a date"),
    ("projects: {id: a}", "projects: expected a list of projects, got keys and values"),
    ("projects: [a]", "projects[0]: expected keys and values, got 'a'"),
    ("projects: [{name: a}]",
     "projects[0].id: missing; expected 1 to 63 of a-z, 0-9, _ and -, the first a-z or 0-9"),
    ("projects: [{id: Billing}]",
     "projects[0].id: expected 1 to 63 of a-z, 0-9, _ and -, the first a-z or 0-9, got 'Billing'"),
    ("projects: [{id: 7}]",
     "projects[0].id: expected 1 to 63 of a-z, 0-9, _ and -, the first a-z or 0-9, got 7"),
    ('projects: [{id: "a\\n"}]',
     "projects[0].id: expected 1 to 63 of a-z, 0-9, _ and -, the first a-z or 0-9, got 'a'"),
    ("projects: [{id: a, name: --}]",
     "projects[0].name: expected a name with a letter or digit in it, got '--'"),
    ("projects: [{id: a, aliases: b}]", "projects[0].aliases: expected a list of names, got 'b'"),
    ("projects: [{id: a, protected: 1}]", "projects[0].protected: expected true or false, got 1"),
    ("projects: [{id: a, lanes: [B]}]",
     "projects[0].lanes: expected a list, each 1 to 63 of a-z, 0-9, _ and -, the first a-z or 0-9, "
     "got a list"),
    ("projects: [{id: a, harness: wrok}]\nharnesses: {work: notebook}",
     "projects[0].harness: there is no harness 'wrok', did you mean work? Known: default, work."),
    ("projects: [{id: a}, {id: a}]", "projects[1].id: 'a' already means projects[0]"),
    ("projects: [{id: a, name: My App}, {id: b, name: my-app}]",
     "projects[1].name: 'my-app' already means projects[0]"),
    ("projects: [{id: a, aliases: [x]}, {id: b, aliases: [c, Ｘ]}]",
     "projects[1].aliases[1]: 'Ｘ' already means projects[0]"),
    ("projects: [{id: a, aliases: [b]}, {id: b}]", "projects[1].id: 'b' already means projects[0]"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "problem"), PROBLEMS)
def test_a_wrong_key_or_value_is_named_with_what_is_allowed(
    file: Path, text: str, problem: str
) -> None:
    assert problems(file, text) == [problem]


def test_all_problems_are_named_at_once(file: Path) -> None:
    found = problems(
        file,
        """
judge: {type: cli, command: x, timeout_s: soon, promt: stdin}
harness: {type: llm, base_url: x}
auto_at: 2
isolation: 3
projects:
  - {id: A}
  - {id: b, name: 3, path: '', harness: gone}
  - {id: c, aliases: [B]}
""",
    )
    assert [each.partition(":")[0] for each in found] == [
        "isolation", "judge.promt", "judge.timeout_s", "harness.base_url", "harness.model", "auto_at",
        "projects[0].id", "projects[1].name", "projects[1].path", "projects[1].harness",
        "projects[2].aliases[0]",
    ]  # fmt: skip


def test_the_same_name_twice_in_one_project_is_no_conflict(file: Path) -> None:
    assert len(load(file, "projects: [{id: a, name: A, aliases: [a, A]}]").projects) == 1


USE = "put it in an environment variable and name it in api_key_env"
LITERAL_KEYS = [
    (f"harness: {{type: llm, base_url: http://x, model: m, api_key: {KEY}}}", "harness.api_key"),
    ("harness: {type: llm, base_url: http://x, model: m, api_key: abc}", "harness.api_key"),
    ("harness: {type: mine, token: abc}", "harness.token"),
    ("harness: {type: mine, deep: [{github_token: 12}]}", "harness.deep[0].github_token"),
    ("harness: {type: mine, password: hunter2}", "harness.password"),
    (f"harness: {{type: mine, argv: [run, {KEY}]}}", "harness.argv[1]"),
    (f"harness: {{type: mine, env_from: {{A: {KEY}}}}}", "harness.env_from.A"),
    ("judge: {type: cli, command: 'ask --api-key abc123def456'}", "judge.command"),
    ("judge: {type: openai_compat, base_url: 'http://u:hunter2@h', model: m}", "judge.base_url"),
    (f"judge: {{type: openai_compat, base_url: http://h, model: m, api_key_env: {KEY}}}",
     "judge.api_key_env"),
    ("projects: [{id: a, description: 'password is hunter2'}]", "projects[0].description"),
    (f"{KEY}: 3", "[masked anthropic-key]"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "where"), LITERAL_KEYS)
def test_a_key_in_the_file_is_refused_and_never_repeated(file: Path, text: str, where: str) -> None:
    found = problems(file, text)
    assert any(each.startswith(f"{where}: ") and USE in each for each in found)
    assert KEY not in "".join(found)
    assert "hunter2" not in "".join(found)


UNREADABLE = [
    (b"", "line 1: the file is empty"),
    (b" \n\n", "line 1: the file is empty"),
    (b"# only this\n", "line 1: the file holds nothing but comments"),
    (b"\n- a\n- b\n", "line 2: expected keys such as `judge:` at the top, got a list"),
    (b"hello", "line 1: expected keys such as `judge:` at the top, got a single value"),
    (b"judge:\n\ttype: manual\n", "line 2, column 1: a tab cannot indent, use spaces"),
    (b"a: 1\njudge: \xff\xfe\n", "line 2: not UTF-8 (byte 0xff)"),
    ("judge: manual".encode("utf-16"), "line 1: the file is UTF-16; save it as UTF-8"),
    (b"judge: [\n", "line 2, column 1: expected the node content, but found '<stream end>' (while "
     "parsing a flow node)"),
    (b"a: b: c\n", "line 1, column 5: mapping values are not allowed here"),
    (b"a: *x\n", "line 1, column 4: found undefined alias 'x'"),
    (b"a: &x [*x]\n", "line 1: an alias stands inside of what it stands for"),
    (b"judge: manual\n---\njudge: local\n",
     "line 2, column 1: but found another document (expected a single document in the stream)"),
    (b"judge: manual\nstore: {}\njudge: local\n",
     "line 3: 'judge' stands here twice, first in line 1"),
    (b"1: 2\n", "line 1: a key is a word, put '1' in quotes"),
    (b"? [a]\n: 3\n", "line 1: a key is a word, got a list"),
    (b"a: \x07\n", "at character 4: U+0007 is not allowed in YAML"),
    (b"a: 2026-13-45\n", "a value cannot be read: month must be in 1..12"),
    (b"a: !!python/object/apply:os.system [x]\n", "line 1, column 4: could not determine a "
     "constructor for the tag 'tag:yaml.org,2002:python/object/…"),
    (b"a: " + b"[" * 40 + b"]" * 40, "line 1: nested more than 32 levels deep"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "problem"), UNREADABLE)
def test_what_is_no_configuration_at_all_is_said_with_its_line(
    file: Path, content: bytes, problem: str
) -> None:
    assert problems(file, content) == [problem]


def test_all_duplicate_keys_are_named(file: Path) -> None:
    assert problems(file, "store: {path: a, path: b}\nauto_at: 1\nauto_at: 1\n") == [
        "line 1: 'path' stands here twice, first in line 1",
        "line 3: 'auto_at' stands here twice, first in line 2",
    ]


def test_nesting_without_end_is_an_error_and_no_crash(file: Path) -> None:
    assert problems(file, b"a: " + b"[" * 100_000)
    assert problems(file, b"a: " + b"{a: " * 100_000)


def test_an_alias_bomb_is_bounded(file: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    begun = time.process_time()
    assert "more than 100,000 values, aliases counted" in problems(file, "\n".join(lines))[0]
    merges = ["a0: &a0 {x: 1, y: 2}"]
    merges += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 12)]
    assert "more than 100,000 values, aliases counted" in problems(file, "\n".join(merges))[0]
    assert time.process_time() - begun < 5


def test_aliases_and_merges_in_reason_are_read(file: Path) -> None:
    config = load(
        file,
        "harness: &llm {type: llm, base_url: http://x, model: a}\n"
        "harnesses: {same: *llm, other: {<<: *llm, model: b}}\n",
    )
    assert config.harness_settings("same") == config.harness_settings("default")
    assert config.harness_settings("other")["model"] == "b"


def test_a_file_of_more_than_a_megabyte_is_not_read(file: Path) -> None:
    assert problems(file, b"#" * ((1 << 20) + 1)) == ["the file is larger than 1,048,576 bytes"]


def test_a_folder_or_a_fifo_is_no_configuration_and_no_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path, tmp_path / "fifo"):
        with pytest.raises(ConfigError, match="it is not a file"):
            load_config(path)


def test_a_broken_configuration_shows_no_secret_from_its_text(file: Path) -> None:
    assert KEY not in "".join(problems(file, f"a: *{KEY}\n"))
    assert KEY not in "".join(problems(file, f"{KEY}: 1\n{KEY}: 2\n"))


FULL = Config(
    judge=CliJudgeConfig(command=("claude", "-p", "it's: #1"), timeout_s=30.5, prompt="argument"),
    harness=HarnessConfig("llm", {"base_url": "http://x", "model": "m", "system": "a\n b: [/\n"}),
    harnesses={"a b": HarnessConfig("mine", {"list": [1, {"x": None}], "no": "yes"})},
    store=StoreConfig(path=Path("/data/isola.db")),
    isolation_s=12.5,
    auto_at=1.0,
    inertia_s=0.0,
    language="zh",
    theme="light",
    mouse=False,
    keys={"why": ("f2", "ctrl+x"), "hold": ("ctrl+k",)},
    projects=(
        ProjectConfig(
            id="billing", name="账单: [/", description="- a\n# b", aliases=("no", "1"),
            path=Path("/src/x y"), harness="a b", protected=True, lanes=("a", "b"),
        ),
        ProjectConfig(id="2"),
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    "config",
    [
        Config(),
        FULL,
        Config(judge=ManualJudgeConfig()),
        Config(judge=OpenAICompatJudgeConfig(base_url="http://x/v1", model="m", api_key_env="K")),
    ],
)
def test_what_is_written_is_read_back_the_same(file: Path, config: Config) -> None:
    write_config(config, file)
    assert load_config(file) == config
    assert "#" in file.read_text()


names = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=30)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(name=names, description=names)
def test_any_name_survives_writing_and_reading(file: Path, name: str, description: str) -> None:
    config = Config(projects=(ProjectConfig(id="a", name=name, description=description),))
    write_config(config, file, force=True)
    try:
        assert load_config(file) == config
    except ConfigError as refusal:
        assert "projects[0].name" in refusal.message  # noqa: PT017 - a name of signs only


def test_a_written_file_is_private_and_never_replaces_another(tmp_path: Path) -> None:
    file = tmp_path / "new" / "config.yaml"
    before = os.umask(0)
    try:
        write_config(Config(), file)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    with pytest.raises(Conflict, match="nothing was changed"):
        write_config(Config(auto_at=0.5), file)
    assert load_config(file) == Config()
    write_config(Config(auto_at=0.5), file, force=True)
    assert load_config(file).auto_at == 0.5


def test_writing_into_a_folder_leaves_its_rights(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    write_config(Config(), tmp_path / "config.yaml")
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_the_llm_harness_knows_the_same_keys() -> None:
    here = {field.name: field.default for field in msgspec.structs.fields(LlmKeys)}
    there = {field.name: field.default for field in msgspec.structs.fields(LlmSettings)}
    assert here == there


leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | names
    | st.dates()
    | st.binary(max_size=5)
    | st.sampled_from(["manual", "cli", "llm", "notebook", "http://x", "a", KEY, "~", "~x", "a\0b"])
)
keys = st.sampled_from(
    [*Config.__struct_fields__, *ProjectConfig.__struct_fields__, *LlmKeys.__struct_fields__,
     "type", "command", "prompt", "token", "env_from"]
) | names  # fmt: skip
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4)
)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.dictionaries(keys, values, max_size=5))
def test_only_a_config_or_its_problems_come_out(file: Path, document: dict[str, object]) -> None:
    file.write_text(yaml.safe_dump(document, allow_unicode=True), "utf-8")
    try:
        config = load_config(file)
    except ConfigError as refusal:
        assert refusal.details["problems"]  # noqa: PT017
        assert KEY not in refusal.message  # noqa: PT017
    else:
        assert isinstance(config, Config)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.binary(max_size=60) | names.map(str.encode))
def test_any_bytes_are_a_config_or_problems(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    try:
        load_config(file)
    except ConfigError as refusal:
        assert refusal.details["problems"]  # noqa: PT017
