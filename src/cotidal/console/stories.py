"""Scripts and lessons that the page can play, and the tour through them.

A story is a script (testing/scripts.py), played by its own small world; a lesson (lessons.py) is
played by the sandbox. The tour follows the texts that asked for cotidal, in their order.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from cotidal.console.lessons import LESSONS
from cotidal.console.world import Json, Refused
from cotidal.sim.plans import PLANS
from cotidal.testing.scripts import read_script

KINDS: Final = ("partition", "cluster", "quorum")
SHIPPED: Final = Path(__file__).parent / "scripts"
IN_SOURCE: Final = Path(__file__).parents[3] / "tests" / "scripts"

TOUR: Final = (
    ("Basic flow", "partition/basic-flow"),
    ("Why one leader", "partition/one-leader"),
    ("Levels of acknowledgement", "partition/acks"),
    ("The high watermark", "partition/high-watermark"),
    ("A slow follower leaves the ISR", "partition/slow-follower"),
    ("A failed follower", "partition/failed-follower"),
    ("acks=all with an ISR of one", "partition/acks-all-with-isr-of-one"),
    ("Min ISR", "partition/min-isr"),
    ("The four recommended settings", "cluster/recommended-settings"),
    ("Leader epochs", "partition/leader-epoch"),
    ("A leader fails", "cluster/failover"),
    ("A temporarily lower high watermark", "cluster/temporarily-lower-high-watermark"),
    ("Logs are reconciled", "partition/reconciliation"),
    ("The old leader returns", "partition/old-leader-returns"),
    ("Catching up and rejoining", "partition/catching-up"),
    ("Unclean election: off", "cluster/unclean-election-off"),
    ("Unclean election: on", "cluster/unclean-election-on"),
    ("Preferred leaders", "cluster/preferred-leader"),
    ("Metadata is a log", "cluster/metadata-log"),
    ("Controllers elect", "quorum/election"),
    ("KRaft failover", "quorum/failover"),
    ("Follower fetching", "cluster/follower-fetching-in-another-region"),
    ("Regions and latency", "lesson/slow-region"),
    ("A quorum stands still after two deaths", "quorum/two-of-three-dead"),
    ("An ISR goes on with one of three", "cluster/writes-go-on-with-one-of-three"),
    ("Failover, then and now", "lesson/failover-then-and-now"),
)


def directory() -> Path:
    """Where the scripts are: in the wheel, or beside the source."""
    return SHIPPED if SHIPPED.is_dir() else IN_SOURCE


@cache
def names() -> tuple[str, ...]:
    found = [
        f"{kind}/{path.stem}"
        for kind in KINDS
        for path in sorted((directory() / kind).glob("*.script"))
    ]
    return (*found, *(f"lesson/{name}" for name in LESSONS))


def text_of(name: str) -> str:
    """Refused unless it is one of ``names``: a name is never a path of anybody's choice."""
    if name not in names() or name.startswith("lesson/"):
        raise Refused(f"there is no story '{name}'")
    return (directory() / f"{name}.script").read_text(encoding="utf-8")


@cache
def library() -> Json:
    """What there is to choose from."""
    return {
        "tour": [{"title": title, "name": name} for title, name in TOUR],
        "all": [{"title": first_words(name), "name": name} for name in names()],
        "plans": {plan.name: plan.about for plan in PLANS.values()},
    }


def title_of(name: str) -> str:
    told = {story: title for title, story in TOUR}
    return told.get(name) or name.split("/")[-1].replace("-", " ").capitalize()


def first_words(name: str) -> str:
    """Of the comment that a script begins with."""
    if name.startswith("lesson/"):
        return LESSONS[name.removeprefix("lesson/")].title
    steps = read_script(text_of(name)).steps
    said = " ".join(line.removeprefix("#").strip() for line in steps[0].before) if steps else ""
    return said.split(". ")[0].rstrip(".") or title_of(name)


def beside(name: str) -> Json:
    """The stories before and after this one on the tour."""
    order = [story for _, story in TOUR]
    if name not in order:
        return {}
    at = order.index(name)
    found: Json = {"number": at + 1, "of": len(order)}
    if at > 0:
        found["before"] = order[at - 1]
    if at + 1 < len(order):
        found["after"] = order[at + 1]
    return found
