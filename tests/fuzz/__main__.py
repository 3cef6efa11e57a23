"""``python -m tests.fuzz [--inputs 200000] [--seed N]``: the long attack, and what it measured."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from real_node import real_node
from tests.fuzz.attack import attack
from tests.fuzz.prey import SETTINGS, create_prey


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=random.randrange(2**31))
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="cotidal-fuzz-") as directory,
        real_node(Path(directory), SETTINGS) as node,
    ):
        try:
            prey = create_prey(node.bootstrap)
            print(attack(node, prey, seed=chosen.seed, inputs=chosen.inputs).told())
        except BaseException:
            print(node.said())
            raise
    return 0


if __name__ == "__main__":
    sys.exit(main())
