"""A model that answers at once, on loopback only: what the agents and judges under test talk to.

It speaks OpenAI chat completions, Anthropic Messages and OpenAI Responses, streamed and plain. What
it says follows from the last user text (see `script`), from behaviours a test sets on the server,
or from a function of the test's own. It keeps every request it saw.

    with FakeModel() as model:
        ...                          # talk to model.url + "/v1"
        assert model.requests[-1].user == "hello"
"""

from tests.fake_model.script import Behaviour, Request
from tests.fake_model.server import FakeModel

__all__ = ["Behaviour", "FakeModel", "Request"]
