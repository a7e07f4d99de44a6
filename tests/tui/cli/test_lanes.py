"""A lane is the same lane however it is named."""

from __future__ import annotations

import pytest

from tests.tui.cli.conftest import Isola


@pytest.mark.usefixtures("projects")
def test_capitals_name_the_same_lane_in_a_message_and_as_an_option(isola: Isola) -> None:
    marked = isola("chat", "--json", "--text", "@billing/Review look at it").json
    option = isola("chat", "--json", "--project", "billing/Review", "--text", "look again").json
    assert marked["lane"] == option["lane"] == "review"
    assert "2 notes" in option["reply"], "both are in one session"


@pytest.mark.usefixtures("projects")
def test_what_no_message_could_name_is_no_lane(isola: Isola) -> None:
    ran = isola("chat", "--json", "--project", "billing/ünï", "--text", "look")
    assert ran.code == 1
    assert ran.json["error"]["code"] == "not_found"
