"""`python -m tests.fake_model --port 0 --log FILE`: the fake model as a program.

It prints one JSON line (`url`, `port`, `pid`) once it listens, and ends when its stdin ends or on
SIGTERM, so that it never outlives the test that started it. `--replies FILE` names a JSON object:
where a user's text contains a key, its value is said.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from pathlib import Path

from tests.fake_model.script import Behaviour, Request
from tests.fake_model.server import FakeModel, Hook


def _replies(path: Path | None) -> Hook | None:
    if path is None:
        return None
    table: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))

    def answer(request: Request) -> str | None:
        return next((said for key, said in table.items() if key in request.user), None)

    return answer


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fake_model")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--replies", type=Path)
    parser.add_argument("--behaviour", type=Behaviour, default=Behaviour.ANSWER)
    options = parser.parse_args()

    def end(number: int, frame: object) -> None:
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    with FakeModel(
        options.port, options.log, _replies(options.replies), options.behaviour
    ) as model:
        line = {"url": model.url, "port": model.port, "pid": os.getpid()}
        print(json.dumps(line), flush=True)
        while os.read(sys.stdin.fileno(), 65536):
            pass


if __name__ == "__main__":
    main()
