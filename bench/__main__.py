"""``python -m bench``: cotidal and one Apache Kafka beside it, one table.

Exit status 0 when every goal with a measurement is met (or nothing was compared), 1 when a goal
is missed and ``--strict`` is given or something failed, 2 for a wrong command line.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import platform
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import NoReturn

from bench import apache_kafka, cotidal_cluster
from bench.failover import Failed
from bench.load import LoadFailed
from bench.run import Contestant, Run, full, quick, say
from bench.server import ServerFailed
from bench.table import as_json, as_text

OURS = "cotidal"
COMPILED = "compiled"
THEIRS = f"Kafka {apache_kafka.VERSION}"


def main() -> int:
    asked = _parse()
    signal.signal(signal.SIGTERM, _stop)  # so that what was started is stopped
    plan = (quick if asked.quick else full)(asked.brokers)
    contestants = _contestants(asked.only)
    if asked.compiled is not None:
        cook = functools.partial(cotidal_cluster.recipe, python=asked.compiled)
        contestants = (*contestants, Contestant(COMPILED, cook))
    try:
        with tempfile.TemporaryDirectory(
            prefix="cotidal-bench-", dir=asked.work, ignore_cleanup_errors=True
        ) as work:
            run = Run(contestants, plan, Path(work))
            if asked.applications:
                run.measure_applications()
            elif asked.alone:
                run.measure_alone()
            else:
                run.measure()
    except (ServerFailed, LoadFailed, Failed, apache_kafka.KafkaMissing) as failure:
        say("")
        print(failure, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 1
    say("")
    standings = [each for each in run.standings() if each.samples]
    if asked.json:
        rows = as_json(standings, OURS, THEIRS)
        print(json.dumps({"machine": _machine(), "brokers": asked.brokers, "rows": rows}, indent=1))
    else:
        print(as_text(standings, OURS, THEIRS))
        if asked.compiled is not None:
            without_goals = [each._replace(row=each.row._replace(goal=None)) for each in standings]
            print(as_text(without_goals, COMPILED, OURS))
    missed = any(standing.is_met(OURS, THEIRS) is False for standing in standings)
    return 1 if asked.strict and missed else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--brokers", type=int, default=1, help="of each cluster (default 1)")
    parser.add_argument("--quick", action="store_true", help="one short repetition")
    parser.add_argument("--json", action="store_true", help="every sample, as JSON")
    parser.add_argument("--strict", action="store_true", help="status 1 when a goal is missed")
    part = parser.add_mutually_exclusive_group()
    part.add_argument("--applications", action="store_true", help="groups and transactions alone")
    part.add_argument(
        "--alone",
        action="store_true",
        help="each contestant by itself on new clusters, nothing warmed up, through librdkafka",
    )
    parser.add_argument("--only", choices=("kafka", "cotidal"), help="one contestant")
    parser.add_argument(
        "--compiled",
        metavar="PYTHON",
        help="a third contestant: the cotidal of this interpreter (.venv-compiled/bin/python)",
    )
    parser.add_argument(
        "--work", type=Path, help="where data goes (default: the temporary directory)"
    )
    return parser.parse_args()


def _contestants(only: str | None) -> tuple[Contestant, ...]:
    kafka = Contestant(THEIRS, apache_kafka.recipe)
    cotidal = Contestant(OURS, cotidal_cluster.recipe)
    if only is not None:
        return (kafka,) if only == "kafka" else (cotidal,)
    try:
        apache_kafka.require_java()
        apache_kafka.jars()
    except apache_kafka.KafkaMissing as missing:
        say(f"without Apache Kafka: {missing}\n")
        return (cotidal,)
    return (kafka, cotidal)


def _machine() -> dict[str, str | int | None]:
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def _stop(_signal: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(1)


if __name__ == "__main__":
    sys.exit(main())
