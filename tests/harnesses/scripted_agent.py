"""An agent program for tests: keeps sessions in files, answers as JSON among noise.

    python scripted_agent.py --state DIR (--new | --resume ID) [--by-argument TEXT]

It writes everything that it had before it to DIR/seen.jsonl. The words `fail` and `slow` alone make
it fail and be slow.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import uuid
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--new", action="store_true")
    parser.add_argument("--resume")
    parser.add_argument("--by-argument")
    options = parser.parse_args()
    by_argument = options.by_argument
    text = sys.stdin.buffer.read().decode() if by_argument is None else str(by_argument)
    session = str(options.resume or uuid.uuid4())
    kept = options.state / f"{session}.json"
    if options.resume and not kept.exists():
        print(f"No conversation found with session ID {session}", file=sys.stderr)
        return 1
    history: list[str] = json.loads(kept.read_text()) if options.resume else []
    with (options.state / "seen.jsonl").open("a") as seen:
        seen.write(json.dumps("\n".join([*history, text])) + "\n")
    if text == "slow":
        time.sleep(60)
    print("\x1b[2mstarting {not json}\x1b[0m")
    print('{"level": "info", "msg": "a log line"}', flush=True)
    if text == "fail":
        print(json.dumps({"is_error": True, "result": "API Error: 500", "session_id": session}))
        return 1
    said = text.split("</isola-context", 1)[-1].split("\n\n", 1)[-1] if "<isola" in text else text
    kept.write_text(json.dumps([*history, text]))
    print(json.dumps({"type": "result", "result": f"REPLY: {said}", "session_id": session}))
    print("bye {", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
