"""Run at the start of every Python that a pipeline's Spark starts: pyspark as it is installed.

Spark puts its own `pyspark.zip` first on their path. Whatever is imported from a zip of sources is
compiled anew by every process: a second of CPU for each, three times what the installed package
takes. Spark starts half a dozen of them for a query, and gives each ten seconds. The zip that lies
within the package is a copy of it, so it is left out where the package can be imported.

Python imports a module of this name by itself if it is on the path, which ``session.start`` sees
to. The one that would have been imported instead is imported after it. A zip of another Spark than
the installed one stays.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

NAME = "sitecustomize"
ZIP = os.path.join("pyspark", "python", "lib", "pyspark.zip")


def without_copies(path: Sequence[str]) -> list[str]:
    """``path`` without a zip of what is there without it."""
    return [each for each in path if not _is_copy(each, path)]


def _is_copy(entry: str, path: Sequence[str]) -> bool:
    installed = entry.removesuffix(os.sep + ZIP)
    return installed != entry and installed in path


def run_next() -> None:
    """What would have been run if this were not here."""
    mine = sys.modules.pop(NAME)
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [each for each in sys.path if os.path.abspath(each) != here]
    try:
        importlib.import_module(NAME)
    except ModuleNotFoundError as missing:
        if missing.name != NAME:
            raise
    finally:
        sys.modules.setdefault(NAME, mine)


if __name__ == NAME:
    sys.path[:] = without_copies(sys.path)
    run_next()
