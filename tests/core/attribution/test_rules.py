"""Names, references, new projects and short answers, as the whole pipeline sees them."""

from __future__ import annotations

import pytest

from isola_core.attribution.router import Router, RoutingContext
from isola_core.model import Attribution, Stage, Target
from tests.core.attribution.scenes import (
    ALL,
    BILLING,
    DOCS,
    PORTAL,
    SEARCH,
    TRADER,
    context,
    project,
    said,
)

ROUTER = Router()
IDS = {"billing": "p1", "search": "p2", "docs": "p3", "portal": "p4", "trader": "p5"}
NAMES = {value: key for key, value in IDS.items()}


def see(text: str, scene: RoutingContext | None = None) -> Attribution:
    return ROUTER.preview(text, scene or context(SEARCH))


def target(found: Attribution) -> str | None:
    return NAMES.get(found.target.project, found.target.project) if found.target else None


class TestNamed:
    @pytest.mark.parametrize(
        ("text", "name"),
        [
            ("billing is broken", "billing"),
            ("ok billing is broken", "billing"),
            ("BILLING: fix the totals", "billing"),
            ("fix the totals in billing.", "billing"),
            ("why does `billing` crash?", "billing"),
            ("billing's totals are wrong", "billing"),
            ("修一下billing的发票", "billing"),
            ("计费挂了", "billing"),
            ("交易系统的行情断了", "trader"),
            ("My Portal login fails", "portal"),
            ("the my-portal login fails", "portal"),
            ("fix portal-web login", "portal"),
            ("搜索服务变慢了", "search"),
        ],
    )
    def test_one_name_decides_by_itself(self, text: str, name: str) -> None:
        found = see(text, context(DOCS))
        assert (target(found), found.automatic, found.stage) == (name, True, Stage.JUDGEMENT)
        assert found.confidence >= 0.95
        assert found.judge == "names"
        assert found.candidates[0].project == IDS[name]
        assert found.runner_up is not None

    @pytest.mark.parametrize(
        "text",
        [
            "search is slow",
            "improve search results",
            "add a search box to the page",
            "update the docs",
            "docs are out of date",
            "my portal login fails",
            "the search index in docs/search/index.py",
            "ERROR: search: timed out",
            "tidy invoices, search, and the rest",
        ],
    )
    def test_an_ordinary_word_only_proposes(self, text: str) -> None:
        found = see(text, context(BILLING))
        assert not found.automatic
        assert {each.project for each in found.candidates} >= {"p1", "p2"}

    @pytest.mark.parametrize(
        ("text", "name"),
        [
            ("search: add synonyms", "search"),
            ("in search, add synonyms", "search"),
            ("in the search project add synonyms", "search"),
            ("add synonyms for search", "search"),
            ("switch to docs", "docs"),
            ("back to search", "search"),
            ("this is for docs", "docs"),
            ("docs：补一页", "docs"),
            ("ok, search: add synonyms", "search"),
            ("it works. search: add synonyms", "search"),
            ("切到docs，补一页", "docs"),
            ("在search里加同义词", "search"),
            ("search项目加同义词", "search"),
            ("search这边，加同义词", "search"),
        ],
    )
    def test_an_ordinary_word_in_a_form_of_address_decides(self, text: str, name: str) -> None:
        found = see(text, context(BILLING))
        assert (target(found), found.automatic) == (name, True)

    def test_a_capital_letter_makes_a_registered_name_of_an_ordinary_word(self) -> None:
        scene = context(BILLING, projects=(BILLING, project("s", "Search")))
        assert see("make Search faster", scene).target == Target("s")
        assert see("make Search faster", scene).automatic
        assert not see("make search faster", scene).automatic
        assert not see("Search is slow", scene).automatic

    @pytest.mark.parametrize(
        "text",
        [
            "fix src/billing/main.py",
            "rename billing_total",
            "the billing-api is down",
            "call billing() twice",
            "open billing.example.com",
            "#billing is a tag",
            "billings are wrong",
            "rebilling fails",
        ],
    )
    def test_a_name_inside_of_an_identifier_proves_nothing(self, text: str) -> None:
        assert not see(text).automatic

    def test_two_names_are_a_question(self) -> None:
        found = see("billing and trader disagree on totals")
        assert found.target is None
        assert not found.automatic
        assert {each.project for each in found.candidates[:2]} == {"p1", "p5"}
        assert "which one" in found.reason

    def test_the_one_that_is_addressed_wins_over_one_that_is_mentioned(self) -> None:
        found = see("search: call the billing API less often", context(DOCS))
        assert target(found) == "search"
        assert found.referenced == ("p1",)

    @pytest.mark.parametrize(
        "text", ["don't touch billing", "everything except billing", "不是计费"]
    )
    def test_a_name_that_is_said_not_to_be_meant_never_decides(self, text: str) -> None:
        assert target(see(text)) != "billing"

    def test_not_this_one_but_that_one(self) -> None:
        assert target(see("not in billing, in docs", context(SEARCH))) == "docs"

    def test_the_longest_name_wins(self) -> None:
        scene = context(projects=(project("a", "atlas"), project("b", "atlas importer")))
        assert see("the atlas importer hangs", scene).target == Target("b")
        assert see("the atlas hangs", scene).target == Target("a")

    @pytest.mark.parametrize("name", ["a", "go", "书", "42", "ok", "继续"])
    def test_names_that_are_hardly_names_do_not_decide_alone(self, name: str) -> None:
        scene = context(BILLING, projects=(BILLING, project("x", name)))
        assert not see(f"please look at {name} once more for the invoice", scene).automatic
        assert see(f"{name}: look at this", scene).target == Target("x")

    def test_a_name_that_other_projects_use_as_a_word_stops_deciding(self) -> None:
        shop = project("s", "shopfront")
        told = [f"the billing address in form {number}" for number in range(6)]
        scene = context(shop, projects=(BILLING, shop), counts={"s": said(*told)})
        assert not see("validate the billing address", scene).automatic
        assert see("billing: validate the address", scene).automatic

    def test_a_name_deep_inside_of_pasted_text_does_not_decide(self) -> None:
        log = "line of a log\n" * 100
        assert not see(f"why does this fail?\n{log}billing crashed\n{log}").automatic
        assert target(see(f"billing fails like this:\n{log}{log}")) == "billing"

    def test_a_shared_alias_is_a_question(self) -> None:
        twins = (project("a", "webshop", "", "storefront"), project("b", "kiosk", "", "storefront"))
        found = see("storefront is down", context(projects=twins))
        assert found.target is None
        assert {each.project for each in found.candidates} == {"a", "b"}

    def test_a_protected_project_is_only_proposed(self) -> None:
        vault = project("v", "treasury", protected=True)
        found = see("treasury: rotate the keys", context(projects=(*ALL, vault)))
        assert found.target == Target("v")
        assert not found.automatic
        assert "protected" in found.reason

    def test_a_stricter_threshold_asks_more(self) -> None:
        assert not see("billing is broken", context(DOCS, auto_at=0.97)).automatic
        assert see("billing: it is broken", context(DOCS, auto_at=0.97)).automatic
        assert not see("ok", context(DOCS, auto_at=0.99)).automatic


class TestReferences:
    @pytest.mark.parametrize(
        "text",
        [
            "use the same layout as billing",
            "do it like in billing",
            "make the errors similar to billing",
            "borrow the test harness from billing",
            "copy the config layout from the billing project",
            "mirror billing's folder layout",
            "do the retries the way billing does",
            "use billing as a template",
            "format dates, same as in billing",
            "参考计费那套",
            "照着 billing 的做法",
            "跟billing对齐",
            "像计费那样处理错误",
            "把billing那套搬过来",
            "沿用billing的目录结构",
            "和计费保持一致",
        ],
    )
    def test_another_projects_name_as_an_example_stays_in_the_current_one(self, text: str) -> None:
        found = see(text, context(SEARCH))
        assert (target(found), found.stage, found.automatic) == ("search", Stage.REFERENCE, True)
        assert found.referenced == ("p1",)

    def test_an_ordinary_word_can_be_referred_to(self) -> None:
        found = see("use the same sidebar as docs", context(BILLING))
        assert (target(found), found.referenced) == ("billing", ("p3",))

    @pytest.mark.parametrize(
        "text",
        [
            "in search: use the same layout as billing",
            "search: same layout as billing",
            "in the search project, copy the retries from billing",
            "search项目，参考billing那套",
        ],
    )
    def test_the_message_may_name_its_own_target(self, text: str) -> None:
        found = see(text, context(DOCS))
        assert (target(found), found.stage, found.automatic) == ("search", Stage.REFERENCE, True)
        assert found.referenced == ("p1",)

    def test_several_references_are_all_recorded(self) -> None:
        found = see("same colours as billing and my portal", context(TRADER))
        assert (target(found), found.referenced) == ("trader", ("p1", "p4"))

    def test_a_reference_to_the_current_project_itself_decides_nothing(self) -> None:
        found = see("same layout as billing", context(BILLING))
        assert not found.automatic
        assert found.referenced == ("p1",)

    def test_without_a_current_project_it_is_a_question(self) -> None:
        found = see("same layout as billing", context(None))
        assert (found.target, found.stage, found.referenced) == (None, Stage.REFERENCE, ("p1",))

    @pytest.mark.parametrize(
        "text", ["I'd like billing to be faster", "it looks like billing is down"]
    )
    def test_like_is_not_always_a_reference(self, text: str) -> None:
        assert target(see(text, context(SEARCH))) == "billing"


class TestNewProjects:
    @pytest.mark.parametrize(
        "text",
        [
            "new project: a tiny CLI for exports",
            "New project",
            "start a new repo for exports",
            "please create a new project called quill",
            "let's start a new project",
            "新项目",
            "新项目：导出工具",
            "新建一个项目",
            "帮我建一个新仓库，叫 quill",
        ],
    )
    def test_a_message_that_asks_for_a_new_project_has_no_target(self, text: str) -> None:
        found = see(text)
        assert (found.new_project, found.target, found.automatic) == (True, None, False)

    @pytest.mark.parametrize(
        "text",
        [
            "add a button to create a new project in the sidebar",
            "create a new project dialog",
            "新项目按钮坏了",
            "the new project page is slow",
        ],
    )
    def test_a_message_about_new_projects_is_none(self, text: str) -> None:
        assert not see(text).new_project

    def test_an_example_for_the_new_project_is_recorded(self) -> None:
        found = see("start a new project, same layout as billing")
        assert (found.new_project, found.target, found.referenced) == (True, None, ("p1",))

    def test_a_named_project_wins(self) -> None:
        found = see("billing: create a new project page")
        assert (found.new_project, target(found)) == (False, "billing")


class TestLowSignal:
    @pytest.mark.parametrize(
        "text", ["ok", "thanks!", "👍", "继续", "also fix that one", "再改一下那个"]
    )
    def test_it_belongs_to_the_conversations_last_project(self, text: str) -> None:
        found = see(text, context(BILLING))
        assert (target(found), found.stage, found.automatic) == ("billing", Stage.LOW_SIGNAL, True)

    @pytest.mark.parametrize("text", ["ok", "再改一下那个"])
    def test_without_a_current_project_it_has_no_target(self, text: str) -> None:
        found = see(text, context(None))
        assert (found.target, found.automatic, found.stage) == (None, False, Stage.LOW_SIGNAL)

    def test_another_project_being_the_only_one_asking_makes_a_card_of_it(self) -> None:
        found = see("yes", context(BILLING, asking=(DOCS,)))
        assert (found.target, found.automatic) == (None, False)
        assert [each.project for each in found.candidates[:2]] == ["p1", "p3"]

    def test_the_current_project_asking_is_answered(self) -> None:
        assert target(see("yes", context(BILLING, asking=(BILLING,)))) == "billing"
        assert target(see("yes", context(BILLING, asking=(DOCS, BILLING)))) == "billing"

    def test_another_projects_pane_in_view_makes_a_card_of_it(self) -> None:
        found = see("ok", context(BILLING, visible=DOCS))
        assert (found.target, found.automatic) == (None, False)
        assert [each.project for each in found.candidates[:2]] == ["p1", "p3"]
        assert target(see("ok", context(BILLING, visible=BILLING))) == "billing"

    def test_the_one_asking_is_offered_where_no_project_is_current(self) -> None:
        found = see("yes", context(None, asking=(DOCS,)))
        assert found.target is None
        assert found.candidates[0].project == "p3"

    def test_ids_that_are_not_registered_play_no_part(self) -> None:
        gone = project("gone")
        assert target(see("ok", context(BILLING, asking=(gone,), visible=gone))) == "billing"
        assert see("ok", context(gone)).target is None

    def test_a_protected_current_project_is_only_proposed(self) -> None:
        vault = project("v", "treasury", protected=True)
        found = see("ok", context(vault, projects=(vault, PORTAL)))
        assert (found.target, found.automatic) == (Target("v"), False)

    def test_a_projects_name_is_never_low_signal(self) -> None:
        found = see("also update the docs", context(BILLING))
        assert found.stage is not Stage.LOW_SIGNAL
        assert not found.automatic
