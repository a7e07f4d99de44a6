"""Every built-in harness keeps the contract, and the suite notices those that do not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest

from isola_core.ports import Harness, Outgoing, SessionRef, SessionStatus, TurnResult
from isola_harnesses import conformance, llm, notebook
from isola_harnesses.conformance import Subject
from isola_harnesses.notebook import NotebookHarness
from isola_harnesses.registry import HarnessServices
from tests.fake_model import FakeModel
from tests.fake_model.reading import objects, texts


def seen_by(model: FakeModel) -> list[str]:
    """All the text of each request."""
    found = []
    for request in model.requests:
        said = [texts(each.get("content")) for each in objects(request.body["messages"])]
        found.append("\n".join(text for each in said for text in each))
    return found


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with FakeModel() as running:
        yield running


def llm_subject(model: FakeModel) -> Subject:
    settings: Mapping[str, object] = {
        "base_url": f"{model.url}/v1",
        "model": "fake-model",
        "max_context_tokens": 100_000,
    }
    return Subject(
        create=lambda services: llm.create(settings, services),
        seen=lambda: seen_by(model),
        failing="[[error:500]]",
        slow="[[sleep:60]]",
    )


@pytest.mark.parametrize("name", conformance.checks())
async def test_the_llm_harness_keeps_the_contract(model: FakeModel, name: str) -> None:
    result = await conformance.run(name, llm_subject(model))
    conformance.require([result])
    assert result.skipped == (name == "an_unknown_question_is_refused")


async def test_the_notebook_harness_keeps_the_contract() -> None:
    subject = Subject(create=lambda services: notebook.create({}, services))
    results = await conformance.check(subject)
    conformance.require(results)
    kept = {each.name for each in results if not each.skipped}
    assert {"a_message_is_answered", "sessions_do_not_see_each_other"} <= kept
    assert {"a_rewound_turn_is_forgotten", "a_receipt_is_never_invented"} <= kept


class Faulty(NotebookHarness):
    """A harness that breaks the contract in one way."""

    def __init__(self, services: HarnessServices, fault: str) -> None:
        super().__init__(services)
        self.fault = fault
        self.said: list[str] = []

    async def ensure_session(self, session: SessionRef) -> SessionStatus:
        status = await super().ensure_session(session)
        if self.fault == "new identity":
            return replace(status, session=replace(session, generation=session.generation + 1))
        return status

    async def dispatch(self, session: SessionRef, message: Outgoing) -> TurnResult:
        self.said.append(message.text)
        match self.fault:
            case "blank":
                return TurnResult(ok=True, reply=" ")
            case "escapes":
                return TurnResult(ok=True, reply="\x1b[2J")
            case "leak":
                return TurnResult(ok=True, reply="\n".join(self.said))
            case "error as reply" if message.text == "fail":
                return TurnResult(ok=True, reply="API Error: 500")
        if message.text == "fail":
            return TurnResult(ok=False, error="it failed")
        return await super().dispatch(session, message)

    async def reset_session(self, session: SessionRef) -> SessionRef:
        fresh = await super().reset_session(session)
        return session if self.fault == "same generation" else fresh


def faulty(fault: str) -> Callable[[HarnessServices], Harness]:
    return lambda services: Faulty(services, fault)


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ("new identity", "ensuring_twice_changes_nothing"),
        ("blank", "a_message_is_answered"),
        ("escapes", "a_message_is_answered"),
        ("leak", "sessions_do_not_see_each_other"),
        ("leak", "a_reset_starts_an_empty_history"),
        ("leak", "a_rewound_turn_is_forgotten"),
        ("same generation", "a_reset_starts_an_empty_history"),
        ("error as reply", "a_failed_turn_is_no_reply"),
    ],
)
async def test_a_broken_promise_is_noticed(fault: str, check: str) -> None:
    result = await conformance.run(check, Subject(create=faulty(fault), failing="fail"))
    assert not result.passed
    with pytest.raises(AssertionError, match=check):
        conformance.require([result])


async def test_a_changed_text_is_noticed() -> None:
    seen: list[str] = []

    class Stripping(NotebookHarness):
        async def dispatch(self, session: SessionRef, message: Outgoing) -> TurnResult:
            seen.append(message.text.strip())
            return await super().dispatch(session, message)

    subject = Subject(create=Stripping, seen=lambda: seen)
    result = await conformance.run("a_text_arrives_as_it_is", subject)
    assert not result.passed
    assert "another text arrived" in result.detail


async def test_what_a_subject_does_not_say_is_skipped() -> None:
    result = await conformance.run("a_failed_turn_is_no_reply", Subject(create=faulty("none")))
    assert result.passed
    assert result.skipped
