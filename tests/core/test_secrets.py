"""Credentials are found in every form people paste them in; what only looks like one passes."""

from __future__ import annotations

import base64
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isola_core.errors import SecretRefused
from isola_core.secrets import find_secrets, mask, masked_sample, refuse_secrets

BODY = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
"""36 characters. Keys are put together here, so that scanners of repositories do not report them."""

JWT = ".".join(
    base64.urlsafe_b64encode(part).decode().rstrip("=")
    for part in (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"1234567890"}', b"signature-of-it")
)
PEM_LINES = ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj", "MzEfYyjiWA4R=="]
PEM = "\n".join(["-----BEGIN PRIVATE" + " KEY-----", *PEM_LINES, "-----END PRIVATE" + " KEY-----"])

KEYS = {
    "anthropic": ("anthropic-key", "sk-" + "ant-api03-" + BODY),
    "openai project": ("openai-key", "sk-" + "proj-" + BODY),
    "openai classic": ("openai-key", "sk-" + BODY + "T3BlbkFJ"),
    "deepseek": ("openai-key", "sk-" + "0123456789abcdef" * 2),
    "github fine-grained": ("github-key", "github" + "_pat_11ABCDEFG0" + BODY + "_" + BODY),
    "github classic": ("github-key", "ghp" + "_" + BODY),
    "github oauth": ("github-key", "gho" + "_" + BODY),
    "github server": ("github-key", "ghs" + "_" + BODY),
    "github user": ("github-key", "ghu" + "_" + BODY),
    "github refresh": ("github-key", "ghr" + "_" + BODY),
    "gitlab": ("gitlab-key", "glpat" + "-" + BODY[:20]),
    "google": ("google-key", "AIza" + "Sy" + BODY[:33]),
    "slack bot": ("slack-key", "xox" + "b-123456789012-" + BODY),
    "slack user": ("slack-key", "xox" + "p-123456789012-" + BODY),
    "npm": ("npm-key", "npm" + "_" + BODY),
    "aws": ("aws-key", "AKIA" + "IOSFODNN7EXAMPLE"),
    "aws session": ("aws-key", "ASIA" + "IOSFODNN7EXAMPLE"),
    "stripe": ("stripe-key", "sk" + "_live_" + BODY[:24]),
    "stripe restricted": ("stripe-key", "rk" + "_live_" + BODY[:24]),
    "jwt": ("jwt", JWT),
    "one letter only": ("anthropic-key", "sk-" + "ant-api03-" + "a" * 40),
}

WRAPPERS = {
    "alone": "{}",
    "in a sentence": "use {} for the staging run, please",
    "at the end of a sentence": "the key is {}.",
    "double quotes": 'say "{}" twice',
    "single quotes": "'{}'",
    "backticks": "run with `{}` set",
    "json": '{{"value": "{}", "n": 1}}',
    "json in json": '{{"body": "{{\\"value\\": \\"{}\\"}}"}}',
    "yaml": "model:\n  value: {}\n  name: x\n",
    "env file": "VALUE={}\nOTHER=1\n",
    "url": "https://example.com/?k={}&x=1",
    "between lines": "first\n{}\nlast",
    "chinese": "用这个 {}，谢谢",
    "chinese without blanks": "用这个{}，谢谢",
}


@pytest.mark.parametrize("wrapper", WRAPPERS.values(), ids=WRAPPERS.keys())
@pytest.mark.parametrize(("kind", "key"), KEYS.values(), ids=KEYS.keys())
def test_a_known_format_is_found_wherever_it_stands(kind: str, key: str, wrapper: str) -> None:
    text = wrapper.format(key)
    found = find_secrets(text)
    assert [each.kind for each in found] == [kind]
    assert text[found[0].start : found[0].end] == key
    assert mask(text) == wrapper.format(f"[masked {kind}]")


JOINTS = {
    "line break": "\n",
    "windows line break": "\r\n",
    "indented": "\n    ",
    "backslash": "\\\n",
    "backslash and indent": "\\\n  ",
    "escaped line break": "\\n",
    "two literals": '" +\n    "',
    "adjacent literals": '"\n    "',
    "quoted mail": "\n> ",
    "zero width space": "\u200b",
}


@pytest.mark.parametrize("joint", JOINTS.values(), ids=JOINTS.keys())
@pytest.mark.parametrize(("kind", "key"), KEYS.values(), ids=KEYS.keys())
@pytest.mark.parametrize("at", [0.3, 0.5, 0.8])
def test_a_key_broken_in_two_is_found_whole(kind: str, key: str, joint: str, at: float) -> None:
    cut = max(2, int(len(key) * at))
    text = f'before "{key[:cut]}{joint}{key[cut:]}" after'
    found = find_secrets(text)
    assert [each.kind for each in found] == [kind]
    assert mask(text) == f'before "[masked {kind}]" after'


def test_a_key_over_three_lines_is_found_whole() -> None:
    key = "sk-" + "ant-api03-AAAA\nBBBB1111CCCC2222\nDDDD3333EEEE"
    assert mask(f"{key}\nthanks") == "[masked anthropic-key]\nthanks"


def test_the_sentence_after_a_key_is_kept() -> None:
    key = KEYS["anthropic"][1]
    assert mask(f"{key}\nplease use it") == "[masked anthropic-key]\nplease use it"
    assert mask(f"{key}\nPlease use it") == "[masked anthropic-key]\nPlease use it"


PRIVATE_KEYS = {
    "whole": PEM,
    "on one line": PEM.replace("\n", "\\n"),
    "on one line with blanks": PEM.replace("\n", " "),
    "cut off": PEM.partition("-----END")[0].strip(),
    "cut off on one line": PEM.partition("-----END")[0].strip().replace("\n", "\\n"),
    "rsa": PEM.replace("PRIVATE", "RSA PRIVATE"),
    "openssh": PEM.replace("PRIVATE", "OPENSSH PRIVATE"),
    "encrypted": PEM.replace("PRIVATE", "ENCRYPTED PRIVATE"),
    "crlf": PEM.replace("\n", "\r\n"),
}


@pytest.mark.parametrize("pem", PRIVATE_KEYS.values(), ids=PRIVATE_KEYS.keys())
@pytest.mark.parametrize("wrapper", ["{}", "here:\n{}\n", 'k = "{}"', '{{"k": "{}"}}'])
def test_a_private_key_is_found_whole(pem: str, wrapper: str) -> None:
    text = wrapper.format(pem)
    assert [each.kind for each in find_secrets(text)] == ["pem-key"]
    masked = mask(text)
    assert all(line not in masked for line in PEM_LINES)
    assert masked.startswith(wrapper.partition("{}")[0].replace("{{", "{"))


LOGINS = [
    ("postgres://app:hunter2@db.local/x", "postgres://app:[masked url-login]@db.local/x"),
    ("https://user:password@example.com", "https://user:[masked url-login]@example.com"),
    (
        "see redis://:s3cr%21et@10.0.0.1:6379/0 now",
        "see redis://:[masked url-login]@10.0.0.1:6379/0 now",
    ),
    ("amqp://u:a@b?c@host", "amqp://u:[masked url-login]@host"),
    (
        "<mongodb+srv://me:12345@c0.example.net>",
        "<mongodb+srv://me:[masked url-login]@c0.example.net>",
    ),
]


@pytest.mark.parametrize(("text", "masked"), LOGINS)
def test_the_password_in_a_url_is_found(text: str, masked: str) -> None:
    assert mask(text) == masked


def test_a_slack_webhook_is_found() -> None:
    text = "post to https://hooks.slack" + ".com/services/T0000/B0000/" + BODY[:24] + " please"
    assert mask(text) == "post to https://[masked slack-webhook] please"


NAMES = [
    "password",
    "passwd",
    "PASSWORD",
    "DB_PASSWORD",
    "dbPassword",
    "pwd",
    "secret",
    "SECRET_KEY",
    "client_secret",
    "clientSecret",
    "client-secret",
    "token",
    "access_token",
    "api_key",
    "apikey",
    "apiKey",
    "api-key",
    "API key",
    "access_key",
    "AWS_SECRET_ACCESS_KEY",
    "private_key",
    "DB_PASS",
    "credential",
    "passphrase",
]
VALUE = "hunter2Xy"
PAIRS = [
    "{name}={value}",
    "{name} = {value}",
    "{name}: {value}",
    "{name}:{value}",
    "{name} := {value}",
    "{name} => '{value}'",
    '{name}="{value}"',
    "{name}: '{value}'",
    "{name}: `{value}`",
    '"{name}": "{value}"',
    '{{"a": 1, "{name}":"{value}", "b": 2}}',
    '{{\\"{name}\\": \\"{value}\\"}}',
    "{{{name}: {value}, user: bob}}",
    "export {name}={value} && run",
    "a:\n  {name}: {value}\n  b: 1\n",
    "{name}: |\n  {value}\n",
    "{name}:\n  {value}\n",
    "- {name}: {value}",
    "https://example.com/?{name}={value}&page=2",
    "Server=x;{name}={value};Port=1",
    "**{name}:** {value}",
    'os.environ["{name}"] = "{value}"',
    "connect(host='x', {name}='{value}')",
    '{name}: str = "{value}"',
    "<{name}>{value}</{name}>",
    "{name}：{value}，谢谢",
    "tool --{name} {value} --verbose",
    "{name}=hunt\\\ner2Xy",
    "{name}=hunt\u200ber2Xy",
]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("name", NAMES)
def test_a_named_credential_is_found_in_every_spelling(name: str, pair: str) -> None:
    text = pair.format(name=name, value=VALUE)
    masked = mask(text)
    assert [each.kind for each in find_secrets(text)] == ["credential"]
    assert VALUE not in masked
    assert "hunt" not in masked
    assert "er2Xy" not in masked
    assert masked.replace("[masked credential]", VALUE) in (
        text,
        text.replace("hunt\\\ner2Xy", VALUE).replace("hunt\u200ber2Xy", VALUE),
    )


NAMED = [
    "password: P@ss,w0rd!",
    "password=swordfish1",
    'password="swordfish"',
    '{"password": "swordfish"}',
    "DB_PASSWORD=swordfish",
    "passwd = correcthorsebatterystaple",
    "password=123456",
    "my password is hunter2",
    "密码是 hunter2",
    "密码：hunter2",
    "密码:hunter2。",
    "登录密码为abc123",
    "口令 = Passw0rd",
    "密钥: abcd1234efgh",
    "新密码改成 Xk29fjq",
    "数据库密码 hunter22",
    "Authorization: Bearer abcDEF123456",
    "authorization: bearer abcdefghij123456",
    '{"Authorization": "Bearer abcDEF1234567"}',
    "Authorization: Basic dXNlcjpwYXNz",
    "curl -H 'Authorization: token 0123456789abcdef' x",
    'curl -H "X-Api-Key: abc123def" https://example.com',
    "send Bearer 3f786850e387550fdab836ed7e6dc881 with it",
    "token=3f786850e387550fdab836ed7e6dc881de23001b",
    "api_key: 123e4567-e89b-12d3-a456-426614174000",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "machine x login bob password hunter22",
    'secret: "correct horse battery9 staple"',
    "token=" + "q1W2" * 700,
    "token=abc123def456ghi789\njkl012mno345pqr678",
]


@pytest.mark.parametrize("text", NAMED)
def test_a_credential_in_words_is_found(text: str) -> None:
    assert len(find_secrets(text)) == 1


def test_a_value_of_any_length_is_reported_whole() -> None:
    assert mask("token=" + "q1W2" * 7000) == "token=[masked credential]"
    assert mask("say sk-" + "ant-" + "q1W2" * 7000) == "say [masked anthropic-key]"


LOOK_ALIKES = [
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "md5 d41d8cd98f00b204e9800998ecf8427e",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b breaks it",
    "123e4567-e89b-12d3-a456-426614174000",
    "where is the api key stored?",
    "API keys",
    "the password reset flow fails",
    "password reset: the mail never comes",
    "Password: the reset flow fails",
    "token bucket: 5 per second",
    "the token expires after 30 minutes",
    "the secret to success: practice",
    "put it into .env and never commit .env",
    "copy .env.example to .env",
    "password=<your password>",
    "password: <your password here>",
    "password=[your password]",
    "api_key: YOUR_API_KEY",
    "api_key=your-key-here",
    "token=$TOKEN",
    'token="$TOKEN"',
    "token: ${X}",
    'password: "${DB_PASSWORD:-}"',
    "password: {{ db_password }}",
    "password={password}",
    "password: %s",
    "password: xxx",
    "secret=****",
    "secret: ...",
    "password: changeme",
    "token = get_token()",
    "const token = await fetchToken(user1)",
    "token = os.environ['TOKEN']",
    "password=os.getenv('X1')",
    'password = getpass.getpass("Password 1: ")',
    "secret = settings.SECRET_KEY",
    "login(password=password, token=self.token)",
    "password: str",
    "password: str | None = None",
    "def f(password: str = '') -> None:",
    "token: Optional[str]",
    "secret=None",
    "token: string;",
    "password: required, at least 8 characters",
    'the field "password": "Enter your password"',
    '<input type="password" name="pw1">',
    "max_tokens=4096",
    "tokens: 4096",
    "token == expected_token",
    "if token != other: pass",
    "Token::Bearer",
    "password > 8 characters",
    "tests_pass: 12",
    "PWD=/home/x1",
    "password_file: /run/secrets/db1",
    "secret: /run/secrets/db1",
    "private_key: ~/.ssh/id_rsa",
    "secret: db-creds",
    "secretName: my-secret-v2",
    "api_key_env: OPENAI_API_KEY",
    "the access token: it expires",
    "api key: see docs/keys.md",
    "token: 2026-05-01",
    "bearer of bad news",
    "Bearer authentication",
    "authorization: required",
    "private key: never commit it",
    "mail alice@example.com or bob.smith+x@mail.example.org",
    "the password is required",
    "forgot my password, mail support@example.com",
    "https://example.com:8080/a@b",
    "http://localhost:3000?user=a@b",
    "http://localhost:8080",
    "git@github.com:org/repo.git",
    "ssh://git@github.com/org/repo",
    "postgres://app:${DB_PASSWORD}@db/x",
    "postgres://app:$PW@db/x",
    "postgres://app:***@db/x",
    "密码重置流程坏了",
    "密码是什么？",
    "密码: 必填",
    "忘记密码 flow",
    "口令太短",
    "密钥轮换",
    "scikit sk-learn-something-long-name",
    "sk-ant-... is the prefix",
    "keys start with sk-ant-api03- or ghp_",
    "sk-" + "ant-api03-xxxxxxxxxxxxxxxxxxxxxxxx",
    "ghp" + "_" + "x" * 36,
    "-----BEGIN PRIVATE" + " KEY----- is how it starts",
    "grep for -----BEGIN RSA PRIVATE" + " KEY-----",
    "npm_config_registry_something_long_name_here",
    "eyJ.eyJ.x is how a token looks",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "[masked credential] and password=[masked credential]",
    "",
    "[/",
]


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_what_only_looks_like_a_credential_passes(text: str) -> None:
    assert [text[each.start : each.end] for each in find_secrets(text)] == []
    assert mask(text) == text


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_a_look_alike_passes_in_quotes_too(text: str) -> None:
    quoted = json.dumps({"text": text}, ensure_ascii=False)
    assert [quoted[each.start : each.end] for each in find_secrets(quoted)] == []


def test_a_refusal_names_field_and_kind_and_never_the_secret() -> None:
    key = KEYS["github classic"][1]
    with pytest.raises(SecretRefused) as refusal:
        refuse_secrets(f"password=hunter2 and {key}", field="description")
    assert refusal.value.code == "secret_content_rejected"
    assert refusal.value.details == {
        "field": "description",
        "findings": [
            {"kind": "credential", "sample": "…"},
            {"kind": "github-key", "sample": f"ghp_…{key[-2:]}"},
        ],
    }
    assert "description" in refusal.value.message
    assert key not in str(refusal.value)
    assert "hunter2" not in str(refusal.value)
    refuse_secrets("nothing here")


def test_a_sample_shows_little_of_a_short_secret() -> None:
    text = "password=hunter2 secret=hunter2Xyz"
    assert [masked_sample(text, each) for each in find_secrets(text)] == ["…", "h…"]


def test_overlapping_findings_become_one_of_the_special_kind() -> None:
    key = KEYS["anthropic"][1]
    assert mask(f"api_key={key}!tail9") == "api_key=[masked anthropic-key]"


FRAGMENTS = st.sampled_from(
    [
        *(key for _, key in KEYS.values()),
        *PEM.split("\n"),
        "password",
        "token",
        "=",
        ": ",
        '"',
        "'",
        "\\",
        "\n",
        " ",
        "hunter2",
        "://",
        "u:p1@h",
        "[masked credential]",
        "[masked ",
        "]",
        "密码",
        "：",
        "Bearer ",
        "<",
        ">",
        "$",
        "{",
        "}",
        "&",
        "sk-",
        "eyJ",
        "\u200b",
        "authorization",
        "İ",
        "\udcff",
        ".",
        "-",
    ]
)
TEXTS = st.lists(FRAGMENTS | st.text(max_size=12), max_size=14).map("".join)


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_masking_twice_changes_nothing(text: str) -> None:
    once = mask(text)
    assert mask(once) == once
    assert find_secrets(once) == ()


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_findings_are_in_order_and_inside_the_text(text: str) -> None:
    at = 0
    for each in find_secrets(text):
        assert at <= each.start < each.end <= len(text)
        at = each.end


@settings(max_examples=300, deadline=None)
@given(
    before=st.text(max_size=40),
    after=st.text(max_size=40),
    key=st.sampled_from([key for _, key in KEYS.values()]),
)
def test_no_byte_of_a_key_survives_masking(before: str, after: str, key: str) -> None:
    masked = mask(f"{before} {key} {after}")
    for found in find_secrets(f" {key} "):
        secret = f" {key} "[found.start : found.end]
        assert secret not in masked


HOSTILE = [
    "sk-",
    "sk-\n",
    "a",
    "token=",
    "token=f(",
    'token="',
    "token='\"",
    "password: ",
    "eyJ.",
    "://",
    "a://a:b",
    "-----BEGIN PRIVATE" + " KEY-----",
    "-----BEGIN PRIVATE" + " KEY-----\\",
    "-----BEGIN ",
    "\\",
    "\\\n",
    " ",
    "\n",
    '"+"',
    "<password>",
    "login a password ",
    "密码",
    "密码: ",
    '"password":"',
    "A",
    "password=x ",
    "token = x,",
    "bearer ",
    "AKIA",
    "sk-ant-\\n",
    "<",
    "[masked x]",
    "token:[",
    'token:\\"',
    "token=a_a-",
    "token=A_",
    "token=/a/",
    "password=a.a.",
    "xoxb-a\n",
    "İtoken=",
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_time_grows_with_the_length_and_no_faster(unit: str) -> None:
    def seconds(length: int) -> float:
        text = (unit * (length // len(unit) + 1))[:length]
        begun = time.process_time()
        find_secrets(text)
        return time.process_time() - begun

    small = min(seconds(10_000) for _ in range(3))
    large = min(seconds(80_000) for _ in range(2))
    assert large < 8 * 4 * max(small, 0.002)  # eight times the text; quadratic would be 64 times


def test_a_megabyte_is_read_in_seconds() -> None:
    text = ("token=f(" * 130_000)[: 1 << 20]
    begun = time.process_time()
    assert mask(text) == text
    assert time.process_time() - begun < 20
