"""Runs the parts of ``make bench`` and prints one table: ``python -m bench [PART] [flags]``."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence

from bench.table import BenchPart, Line, parts, table, tell


def main(arguments: Sequence[str]) -> int:
    """Run one part with its flags, or all parts that can run here with their defaults.

    Returns:
        0 if every part was measured, 1 if one failed, 2 for bad input.
    """
    known = parts()
    if arguments and not arguments[0].startswith("-"):
        name, *flags = arguments
        if name not in known:
            print(f"PART={name}: expected one of {', '.join(known)}", file=sys.stderr)
            return 2
        return run([(known[name], known[name].parser().parse_args(flags))])
    _overview(known).parse_args(arguments)
    return run([(part, part.parser().parse_args([])) for part in known.values()])


def run(chosen: Sequence[tuple[BenchPart, argparse.Namespace]]) -> int:
    """Measure the parts one after the other and print their lines."""
    lines: list[Line] = []
    left_out: list[str] = []
    failed = False
    for part, options in chosen:
        if part.missing:
            left_out.append(f"{part.name}: not measured: {part.missing}")
            continue
        tell(f"{part.name}: {part.what}")
        try:
            lines += part.measure(options)
        except (Exception, SystemExit) as error:  # one part must not cost the lines of the others
            traceback.print_exc()
            left_out.append(f"{part.name}: failed: {error}")
            failed = True
    print("\n".join([*([table(lines)] if lines else []), *left_out]))
    return 1 if failed else 2 if not lines else 0


def _overview(known: dict[str, BenchPart]) -> argparse.ArgumentParser:
    listed = "\n".join(f"  {each.name:9} {each.what}" for each in known.values())
    return argparse.ArgumentParser(
        prog="python -m bench",
        description=f"Measures all parts, or PART=... with its ARGS=...\n\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
