"""What a person is told of the hunt: a line for each bug, a summary, a table. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.mutants.__main__ import Verdict


def line(verdict: Verdict) -> str:
    hunters = [_script(verdict.script), _campaign(verdict.run), _test(verdict.test)]
    told = "; ".join(each for each in hunters if each)
    return f"{'killed' if verdict.is_killed else 'ALIVE ':6}  {verdict.mutant.name:40} {told}"


def summary(verdicts: Sequence[Verdict], seconds: float) -> Iterator[str]:
    killed = sum(verdict.is_killed for verdict in verdicts)
    by_script = sum(verdict.script is not None for verdict in verdicts)
    by_campaign = sum(verdict.by_campaign for verdict in verdicts)
    yield (
        f"{killed} of {len(verdicts)} killed: {by_script} by a script, {by_campaign} by a campaign"
        f" alone; {seconds:.0f} s"
    )
    by_test = [verdict.mutant.name for verdict in verdicts if verdict.test]
    if by_test:
        yield f"found by unit tests only: {', '.join(by_test)}"


def table(verdicts: Sequence[Verdict]) -> Iterator[str]:
    yield "| planted bug | a script | a campaign alone |"
    yield "|---|---|---|"
    for verdict in verdicts:
        script = f"`{verdict.script}`" if verdict.script else ""
        run = verdict.run
        found = ""
        if run is not None and run["broken"] is not None:
            found = f"{run['broken']}, {run['plan']} seed {run['seed']}, {_runs(run)}"
        elif run is not None:
            found = f"not in {_runs(run)}"
        yield f"| {verdict.mutant.name} | {script} | {found} |"


def _script(script: str | None) -> str:
    return "" if script is None else f"script {script}"


def _test(test: str | None) -> str:
    return "" if test is None else f"only by the unit test {test}"


def _campaign(run: dict[str, Any] | None) -> str:
    if run is None:
        return ""
    if run["broken"] is None:
        return f"not found in {_runs(run)}" + (" (time is up)" if run["expired"] else "")
    return f"{run['broken']} in {run['plan']} seed {run['seed']} after {_runs(run)}"


def _runs(run: dict[str, Any]) -> str:
    return f"{run['runs']} run{'' if run['runs'] == 1 else 's'}"
