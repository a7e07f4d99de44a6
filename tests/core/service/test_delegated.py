"""What a person does with messages: accept, confirm, withdraw, undo, correct, hold, commit."""

from __future__ import annotations

import pytest

from isola_core.errors import (
    Ambiguous,
    Conflict,
    InvalidInput,
    NotFound,
    SecretRefused,
    TextNeeded,
)
from isola_core.model import (
    Attribution,
    DecisionState,
    DeliveryState,
    RewindState,
    Stage,
    Target,
)
from isola_core.ports import Judgement, JudgeQuestion
from isola_core.projects import ProjectChanges
from isola_core.service.delegated import Corrected, Withdrawn
from tests.core.world import BILLING, INFRA, SEARCH, World, open_world

WAITING = DecisionState.WAITING_CONFIRMATION
KEY = "sk-ant-api03-" + "A1b2C3d4" * 11 + "-xyzAA"


async def test_an_addressed_message_is_delivered_committed_and_remembered(world: World) -> None:
    decision = await world.say("@billing we decided to keep the audit rows")
    assert (decision.state, decision.project) == (DecisionState.TENTATIVE, "billing")
    assert decision.deadline is None, "the window starts when the text is written"
    await world.deliver()
    delivered = await world.now(decision)
    assert delivered.delivery is DeliveryState.ANSWERED
    assert delivered.reply == "re: we decided to keep the audit rows"
    assert delivered.deadline == world.clock.now() + 300_000
    await world.pass_window()
    assert (await world.now(decision)).state is DecisionState.COMMITTED
    (memory,) = await world.remembered("billing", "audit rows")
    assert memory.content == "we decided to keep the audit rows"
    assert await world.remembered("search", "audit rows") == []


async def test_an_accepted_message_costs_one_transaction(world: World) -> None:
    await world.say("@billing first, which creates the session")
    before = world.store.transactions
    await world.say("@billing second")
    assert world.store.transactions == before + 1


async def test_an_unsure_message_becomes_a_card_and_is_confirmed(world: World) -> None:
    card = await world.say("make the thing faster")
    assert card.state is WAITING
    assert card.project is None
    assert await world.rows("SELECT * FROM deliveries") == []
    confirmed = await world.service.confirm(card.id, SEARCH)
    assert (confirmed.state, confirmed.project) == (DecisionState.TENTATIVE, "search")
    again = await world.service.confirm(card.id, SEARCH)
    assert again.id == confirmed.id
    assert len(await world.rows("SELECT * FROM deliveries")) == 1
    with pytest.raises(Conflict, match="correct"):
        await world.service.confirm(card.id, BILLING)


async def test_what_was_shown_is_what_happens(world: World) -> None:
    shown = Attribution(Stage.JUDGEMENT, 0.6, "words", SEARCH, judge="local")
    decision = await world.say("make the thing faster", shown=shown)
    assert (decision.state, decision.project) == (DecisionState.TENTATIVE, "search")


async def test_a_text_that_now_addresses_another_project_than_was_shown_becomes_a_card(
    world: World,
) -> None:
    shown = Attribution(Stage.JUDGEMENT, 0.6, "words", SEARCH, judge="local")
    card = await world.say("@billing make the thing faster", shown=shown)
    assert card.state is WAITING
    assert "search was shown" in card.attribution.reason
    assert card.attribution.candidates[0].project == "billing"


async def test_a_project_that_went_away_after_it_was_shown_becomes_a_card(world: World) -> None:
    shown = Attribution(Stage.JUDGEMENT, 0.9, "words", SEARCH, judge="local")
    await world.projects.retire("search")
    decision = await world.say("make the thing faster", shown=shown)
    assert decision.state is WAITING
    assert "removed" in decision.attribution.reason


async def test_a_protected_project_is_never_chosen_automatically(world: World) -> None:
    await world.projects.edit("infra", ProjectChanges(protected=True))
    shown = Attribution(Stage.JUDGEMENT, 0.99, "words", INFRA, judge="local")
    assert (await world.say("restart it", shown=shown)).state is WAITING
    assert (await world.say("@infra restart it")).state is DecisionState.TENTATIVE
    assert (await world.say("restart", targets=(INFRA,))).state is DecisionState.TENTATIVE


async def test_two_addressed_projects_get_a_message_each(world: World) -> None:
    accepted = await world.accept("@billing @search rename the column")
    assert [each.project for each in accepted.decisions] == ["billing", "search"]
    parents = {each.message.parent for each in accepted.decisions}
    assert len(parents) == 1
    await world.deliver()
    assert world.harness.texts("billing") == ["rename the column"]
    assert world.harness.texts("search") == ["rename the column"]
    await world.service.correct(accepted.decisions[0].id, INFRA)
    await world.deliver()
    assert world.harness.texts("billing") == []
    assert world.harness.texts("search") == ["rename the column"]


async def test_lanes_are_sessions_of_their_own(world: World) -> None:
    decision = await world.say("@billing/review look at this")
    assert decision.lane == "review"
    await world.deliver()
    assert [each["session"] for each in world.harness.records()] == ["proj:billing:review"]


async def test_a_replayed_event_changes_nothing_and_says_so(world: World) -> None:
    first = await world.accept("@billing once", event_id="e-1")
    again = await world.accept("@search something else", event_id="e-1")
    assert again.duplicate
    assert [each.id for each in again.decisions] == [each.id for each in first.decisions]
    by_platform = await world.accept("@billing hi", platform="chat", platform_id="7")
    replay = await world.accept("@billing hi", platform="chat", platform_id="7")
    other = await world.accept("@billing hi", platform="mail", platform_id="7")
    assert replay.duplicate
    assert not other.duplicate
    assert not by_platform.duplicate
    assert len(await world.rows("SELECT * FROM messages")) == 3


@pytest.mark.parametrize("text", ["", "  \n\t ", "\u200b\u200b", "\x1b\x07", "@billing"])
async def test_nothing_to_say_is_refused_and_stores_nothing(world: World, text: str) -> None:
    with pytest.raises(InvalidInput):
        await world.say(text)
    assert await world.rows("SELECT * FROM messages") == []


async def test_a_message_too_large_is_refused_with_the_limit(world: World) -> None:
    with pytest.raises(InvalidInput, match="4,194,304"):
        await world.say("@billing " + "x" * 4_194_304)
    decision = await world.say("@billing " + "x" * 1_000_000)
    await world.deliver()
    assert world.harness.texts("billing") == ["x" * 1_000_000]
    assert (await world.now(decision)).delivery is DeliveryState.ANSWERED


async def test_a_credential_stops_at_the_door(world: World) -> None:
    with pytest.raises(SecretRefused) as refused:
        await world.say(f"@billing use {KEY} please")
    assert KEY not in str(refused.value.details)
    assert await world.rows("SELECT * FROM messages") == []
    assert KEY.encode() not in world.store.path.read_bytes()


async def test_sent_unstored_a_credential_reaches_the_session_and_nothing_else(
    world: World,
) -> None:
    decision = await world.say(f"@billing use {KEY} please", unstored=True)
    await world.deliver()
    assert world.harness.texts("billing") == [f"use {KEY} please"]
    assert decision.message.masked
    assert KEY not in decision.message.text
    assert KEY not in (await world.now(decision)).reply
    await world.pass_window()
    assert await world.remembered("billing", "use please") == []
    await world.store.read(lambda tx: tx.all("PRAGMA wal_checkpoint"))
    for file in world.store.path.parent.iterdir():
        assert KEY.encode() not in file.read_bytes(), file


async def test_a_correction_of_an_unstored_message_asks_for_its_text(world: World) -> None:
    decision = await world.say(f"@billing use {KEY} please", unstored=True)
    await world.deliver()
    world.core.vault.texts.clear()
    with pytest.raises(TextNeeded):
        await world.service.correct(decision.id, SEARCH)
    with pytest.raises(InvalidInput, match="not the text"):
        await world.service.correct(decision.id, SEARCH, text="something else")
    assert (await world.now(decision)).state is DecisionState.TENTATIVE
    await world.service.correct(decision.id, SEARCH, text=f"use {KEY} please")
    await world.deliver()
    assert world.harness.texts("search") == [f"use {KEY} please"]


async def test_a_correction_before_delivery_stops_it(world: World) -> None:
    decision = await world.say("@billing MARKER")
    corrected = await world.service.correct(decision.id, SEARCH)
    assert corrected.undone.stopped_before_delivery
    assert not corrected.undone.rewinding
    assert corrected.undone.cancelled_writes == 1
    await world.deliver()
    assert world.harness.texts("billing") == []
    assert world.harness.texts("search") == ["MARKER"]
    assert (await world.now(decision)).state is DecisionState.CORRECTED
    assert corrected.new.previous == decision.id


async def test_a_correction_after_the_answer_rewinds_before_anything_else(world: World) -> None:
    first = await world.say("@billing MARKER")
    await world.deliver()
    await world.service.correct(first.id, SEARCH)
    await world.say("@billing another one")
    await world.deliver()
    assert world.harness.texts("billing") == ["another one"]
    assert world.harness.texts("search") == ["MARKER"]
    assert (await world.now(first)).rewind is RewindState.DONE


async def test_a_correction_after_the_commit_retires_what_was_remembered(world: World) -> None:
    decision = await world.say("@billing we decided on MARKER for good")
    await world.deliver()
    await world.pass_window()
    assert await world.remembered("billing", "MARKER")
    corrected = await world.service.correct(decision.id, SEARCH)
    assert len(corrected.undone.retired_memories) == 1
    assert await world.remembered("billing", "MARKER") == []
    await world.deliver()
    await world.pass_window()
    assert await world.remembered("billing", "MARKER") == []
    assert [each.content for each in await world.remembered("search", "MARKER")] == [
        "we decided on MARKER for good"
    ]


async def test_a_memory_stays_while_another_message_stands_behind_it(world: World) -> None:
    first = await world.say("@billing we decided to use Postgres")
    second = await world.say("@billing we decided to use Postgres", "c2")
    await world.deliver()
    await world.pass_window()
    assert len(await world.remembered("billing", "Postgres")) == 1
    kept = await world.service.correct(first.id, SEARCH)
    assert kept.undone.retired_memories == ()
    assert len(await world.remembered("billing", "Postgres")) == 1
    gone = await world.service.withdraw(second.id)
    assert len(gone.undone.retired_memories) == 1
    assert await world.remembered("billing", "Postgres") == []


async def test_a_correction_can_be_corrected_and_undone(world: World) -> None:
    first = await world.say("@billing MARKER")
    await world.deliver()
    second = (await world.service.correct(first.id, SEARCH)).new
    await world.deliver()
    third = (await world.service.correct(second.id, INFRA)).new
    await world.deliver()
    assert world.harness.texts("infra") == ["MARKER"]
    assert world.harness.texts("billing") == world.harness.texts("search") == []
    undone = await world.service.undo(third.id)
    assert isinstance(undone, Corrected)
    assert undone.new.project == "search"
    await world.deliver()
    assert world.harness.texts("search") == ["MARKER"]
    assert world.harness.texts("infra") == []


async def test_the_same_correction_twice_is_one(world: World) -> None:
    first = await world.say("@billing MARKER")
    one = await world.service.correct(first.id, SEARCH)
    two = await world.service.correct(first.id, SEARCH)
    assert two.duplicate
    assert two.new.id == one.new.id
    with pytest.raises(Conflict, match=one.new.id):
        await world.service.correct(first.id, INFRA)
    with pytest.raises(Conflict, match="already"):
        await world.service.correct(one.new.id, SEARCH)


async def test_undo_of_a_sending_gives_the_text_back(world: World) -> None:
    decision = await world.say("@billing MARKER")
    await world.deliver()
    undone = await world.service.undo(decision.id)
    assert isinstance(undone, Withdrawn)
    assert undone.text == "MARKER"
    await world.deliver()
    assert world.harness.texts("billing") == []
    with pytest.raises(Conflict):
        await world.service.withdraw(decision.id)


async def test_a_card_can_be_withdrawn(world: World) -> None:
    card = await world.say("make the thing faster")
    gone = await world.service.withdraw(card.id)
    assert gone.decision.state is DecisionState.WITHDRAWN
    with pytest.raises(Conflict, match="send the message again"):
        await world.service.correct(card.id, BILLING)


async def test_a_held_window_never_commits(world: World) -> None:
    decision = await world.say("@billing hold this")
    await world.deliver()
    held = await world.service.hold(decision.id)
    assert (held.held, held.deadline) == (True, None)
    await world.pass_window()
    assert (await world.now(decision)).state is DecisionState.TENTATIVE
    released = await world.service.release(decision.id)
    assert released.deadline == world.clock.now() + 300_000
    await world.pass_window()
    assert (await world.now(decision)).state is DecisionState.COMMITTED


async def test_held_before_delivery_the_window_does_not_start(world: World) -> None:
    decision = await world.say("@billing hold this")
    await world.service.hold(decision.id)
    await world.deliver()
    assert (await world.now(decision)).deadline is None
    await world.pass_window()
    assert (await world.now(decision)).state is DecisionState.TENTATIVE


async def test_commit_now_ends_the_window_when_the_turn_has_ended(world: World) -> None:
    early = await world.say("@billing one")
    await world.service.commit_now(early.id)
    assert (await world.now(early)).state is DecisionState.TENTATIVE
    await world.deliver()
    await world.recovery.tick()
    assert (await world.now(early)).state is DecisionState.COMMITTED
    late = await world.say("@billing two")
    await world.deliver()
    assert (await world.service.commit_now(late.id)).state is DecisionState.COMMITTED


async def test_a_failed_delivery_never_commits_and_can_be_sent_again(world: World) -> None:
    world.harness.fail = "model overloaded"
    decision = await world.say("@billing try this")
    await world.deliver()
    failed = await world.now(decision)
    assert failed.delivery is DeliveryState.FAILED
    assert failed.delivery_error == "model overloaded"
    assert failed.reply == ""
    await world.pass_window()
    assert (await world.now(decision)).state is DecisionState.TENTATIVE
    with pytest.raises(Conflict, match="resend"):
        await world.service.commit_now(decision.id)
    world.harness.fail = None
    await world.service.resend(decision.id)
    await world.deliver()
    sent = await world.now(decision)
    assert (sent.delivery, sent.attempt) == (DeliveryState.ANSWERED, 2)
    await world.pass_window()
    assert (await world.now(decision)).state is DecisionState.COMMITTED


async def test_an_abbreviated_id_works_only_where_it_is_unique(world: World) -> None:
    one = await world.say("@billing one")
    await world.say("@billing two")
    with pytest.raises(Ambiguous) as ambiguous:
        await world.service.decision(one.id[:5])
    assert len(ambiguous.value.details["candidates"]) == 2  # type: ignore[arg-type]
    assert (await world.service.decision(one.id[2:])).id == one.id
    with pytest.raises(NotFound):
        await world.service.decision("d-zzz")
    with pytest.raises(NotFound):
        await world.service.decision("%")


async def test_unknown_and_retired_projects_are_refused_before_anything_is_stored(
    world: World,
) -> None:
    with pytest.raises(NotFound):
        await world.say("hello", targets=(Target("nowhere"),))
    await world.projects.retire("search")
    with pytest.raises(Conflict, match="retired"):
        await world.say("hello", targets=(SEARCH,))
    assert await world.rows("SELECT * FROM messages") == []
    decision = await world.say("@billing hello")
    with pytest.raises(Conflict, match="retired"):
        await world.service.correct(decision.id, SEARCH)
    assert (await world.now(decision)).state is DecisionState.TENTATIVE


async def test_inertia_follows_corrections_and_stays_inside_its_conversation(
    world: World,
) -> None:
    first = await world.say("@billing one", "c1")
    assert (await world.say("continue", "c1")).project == "billing"
    assert (await world.say("continue", "c2")).state is WAITING
    await world.say("@infra something", "c1")
    await world.service.correct(first.id, SEARCH)
    follows = await world.say("continue", "c1")
    assert follows.project == "infra", "an older message's correction moves nothing"
    await world.service.correct(follows.id, SEARCH)
    assert (await world.say("continue", "c1")).project == "search"


async def test_inertia_fades(world: World) -> None:
    await world.say("@billing one")
    world.clock.advance(4 * 3600 + 1)
    assert (await world.say("continue")).state is WAITING


class ScriptedJudge:
    name = "scripted"

    def __init__(self, answer: Judgement | Exception) -> None:
        self.answer = answer
        self.questions: list[JudgeQuestion] = []

    async def judge(self, question: JudgeQuestion) -> Judgement:
        self.questions.append(question)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def close(self) -> None:
        return None


async def test_the_message_is_stored_before_an_external_judge_sees_it(tmp_path) -> None:  # type: ignore[no-untyped-def]
    from isola_core.model import Candidate

    judge = ScriptedJudge(Judgement((Candidate("search", 0.98, "it is about ranking"),)))
    async with open_world(tmp_path, judge=judge) as world:
        before = world.store.transactions
        decision = await world.say("make the thing faster")
        assert decision.project == "search"
        assert world.store.transactions == before + 2
        assert await world.rows("SELECT weak_label FROM decisions") == [{"weak_label": 1}]
        judge.answer = RuntimeError("boom")
        card = await world.say("speed up the nightly export")
        assert card.state is WAITING


async def test_drafts_are_kept_masked_by_conversation(world: World) -> None:
    await world.service.save_draft("c1", f"deploy with {KEY}", "billing")
    text, target = await world.service.draft("c1")
    assert KEY not in text
    assert target == "billing"
    assert await world.service.draft("c2") == ("", None)
    await world.service.save_draft("c1", "")
    assert await world.service.draft("c1") == ("", None)


async def test_raw_text_is_never_attributed_and_never_a_memory(world: World) -> None:
    decision = await world.say("/compact", targets=(BILLING,), raw=True)
    await world.deliver()
    assert world.harness.texts("billing") == ["/compact"]
    await world.pass_window()
    assert (await world.now(decision)).state is DecisionState.COMMITTED
    assert await world.rows("SELECT * FROM memories") == []
    assert (await world.say("continue")).state is WAITING


async def test_a_waiting_message_can_be_changed_until_it_is_on_its_way(world: World) -> None:
    decision = await world.say("@billing the first wording")
    changed = await world.service.edit_waiting(decision.id, "the second wording")
    assert changed.message.text == "the second wording"
    with pytest.raises(InvalidInput):
        await world.service.edit_waiting(decision.id, "  ")
    with pytest.raises(SecretRefused):
        await world.service.edit_waiting(decision.id, KEY)
    await world.deliver()
    assert world.harness.texts("billing") == ["the second wording"]
    with pytest.raises(Conflict, match="on its way"):
        await world.service.edit_waiting(decision.id, "too late")


async def test_search_finds_messages_and_replies_literally(world: World) -> None:
    await world.say("@billing the Invoice is 100% wrong")
    await world.say("@search 发票 looks fine")
    await world.deliver()
    assert [each.project for each in await world.service.search("invoice")] == ["billing"]
    assert [each.project for each in await world.service.search("发票")] == ["search"]
    assert [each.project for each in await world.service.search("100%")] == ["billing"]
    assert len(await world.service.search("re: ")) == 2
    for query in ("%", "_", "\\", "' OR 1=1 --", ""):
        assert [
            each for each in await world.service.search(query) if query not in each.message.text
        ] == []


async def test_older_decisions_come_in_pages(world: World) -> None:
    made = [(await world.say(f"@billing number {number}")).id for number in range(7)]
    newest = await world.service.latest(limit=3)
    assert [each.id for each in newest] == made[4:]
    older = await world.service.latest(limit=3, before=newest[0].id)
    assert [each.id for each in older] == made[1:4]


async def test_no_time_runs_out_for_a_delivery_that_failed_or_is_unknown(world: World) -> None:
    world.harness.fail = "down"
    failed = await world.say("@billing one")
    await world.deliver()
    assert (await world.now(failed)).deadline is None
    world.harness.fail = None
    world.harness.proves_receipt = world.harness.receipt_known = False
    unknown = await world.say("@search two")
    await world.deliver()
    assert (await world.now(unknown)).deadline is None
    settled = await world.service.settle(unknown.id)
    assert settled.deadline == world.clock.now() + 300_000
    await world.pass_window()
    assert (await world.now(unknown)).state is DecisionState.COMMITTED
    assert (await world.now(failed)).state is DecisionState.TENTATIVE


async def test_undo_of_a_corrected_decision_undoes_the_correction(world: World) -> None:
    first = await world.say("@billing MARKER")
    await world.deliver()
    await world.service.correct(first.id, SEARCH)
    undone = await world.service.undo(first.id)
    assert isinstance(undone, Corrected)
    assert undone.new.project == "billing"


async def test_undo_never_takes_a_committed_message_back(world: World) -> None:
    decision = await world.say("@billing MARKER")
    await world.deliver()
    await world.pass_window()
    with pytest.raises(Conflict, match="take it back"):
        await world.service.undo(decision.id)
    assert (await world.now(decision)).state is DecisionState.COMMITTED
