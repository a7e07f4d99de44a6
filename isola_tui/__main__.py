"""The command `isola`: the answers that must be instant, then the rest.

Start-up cost is design: `isola --version` answers before the command-line library is imported, so
this file imports nothing at its top but `sys`, and `isola_core` holds nothing but its version.
"""

import sys


def main() -> int:
    """Run `isola` with the arguments of the process and return its exit code."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        from isola_core import __version__

        print(f"isola {__version__}")
        return 0
    from isola_tui.cli import run

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
