"""Run one bench: `python -m tests.bench NAME [--data DIR] [--json]`, or `--list`.

A bench is a module beside this one with a function `run`, see `figures.Bench`. A missed target is
printed as missed and the exit code stays 0: a bench reports, it does not judge. Exit code 64 means
wrong usage; a bench that breaks ends with its traceback.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench.figures import Bench, report, table

NOT_BENCHES = {"__main__", "figures"}
EXIT_USAGE = 64


def discover() -> dict[str, Bench]:
    """The benches by name, from the modules beside this one."""
    found: dict[str, Bench] = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem in NOT_BENCHES or path.stem.startswith(("test_", "_")):
            continue
        found[path.stem] = importlib.import_module(f"tests.bench.{path.stem}").run
    return found


def main(arguments: Sequence[str], benches: Mapping[str, Bench]) -> int:
    """Run what the arguments ask for and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", exit_on_error=False)
    parser.add_argument("name", nargs="?", help="the bench to run")
    parser.add_argument("--list", action="store_true", help="print the names of the benches")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        default=os.environ.get("ISOLA_BENCH_DATA"),
        help="the folder of data sets (default: $ISOLA_BENCH_DATA)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    try:
        options, unknown = parser.parse_known_args(arguments)
    except argparse.ArgumentError as error:
        return _wrong_usage(str(error))
    if unknown:
        return _wrong_usage(f"unknown arguments: {' '.join(unknown)}")
    if options.list:
        for name, bench in benches.items():
            print(f"{name:<16}{_first_line(bench)}")
        return 0
    if options.name not in benches:
        return _wrong_usage(f"name one of: {', '.join(benches)}")
    if options.data is not None and not options.data.is_dir():
        return _wrong_usage(f"{options.data} is not a folder")
    result = benches[options.name](options.data)
    print(json.dumps(report(options.name, result)) if options.json else table(options.name, result))
    return 0


def _first_line(bench: Bench) -> str:
    return (sys.modules[bench.__module__].__doc__ or "").partition("\n")[0]


def _wrong_usage(text: str) -> int:
    print(f"tests.bench: {text}", file=sys.stderr)
    return EXIT_USAGE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], discover()))
