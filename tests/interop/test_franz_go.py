"""franz-go's own tests of its client (package kgo), as they are in its module, at RF 3.

Only those that speak to a server are counted; the others test the client alone.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from tests.interop.suites import Missing, Ran, Suite, cache, fetch, run
from tests.interop.trios import Killer, Trio

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1_500)]

MODULE: Final = "github.com/twmb/franz-go"
VERSION: Final = "v1.22.2"
RECORDS: Final = 500
"""Of the chains of groups, instead of 500,000: minutes on two cores, not hours."""
SUITE_SECONDS_MAX: Final = 570
BUILD_SECONDS_MAX: Final = 600

SPEAKS: Final = re.compile(r"newTestClient\(|testClientOpts\(|tmpTopic|adm\(\)")
FUNCTION: Final = re.compile(r"^func (Test\w+)\(t \*testing\.T\) \{\n(.*?)^\}", re.S | re.M)
OUTCOME: Final = re.compile(r"^( *)--- (PASS|FAIL|SKIP): (\S+) \(", re.M)
CHAINS: Final = {"TestGroupETL", "TestTxnEtl"}
CHAIN_UNDER_KILLS: Final = "TestGroupETL"
RECORDS_UNDER_KILLS: Final = 2_000
TRANSACTIONS_UNDER_KILLS: Final = "TestTxnEtl"
"""As it is, it takes a connection that is refused for a failure, on Kafka too: it is made patient
(go/patient_test.go)."""
KILLS_MAX: Final = 8
"""Then quiet: a static member whose leave was lost with a broker goes when its session ends (45 s),
and that begins anew whenever its coordinator moves, on Kafka too. What it had is read by nobody
until then."""
PATIENCE: Final = {
    "helpers_test.go": ("\t\tAlwaysRetryEOF(),\n", "\t\tAlwaysRetryEOF(), Dialer(patientDial),\n"),
    "txn_test.go": (
        'c.sendErr(fmt.Errorf("poll got unexpected errs: %v", fetchErrs))',
        "c.bear(fetchErrs)",
    ),
}
"""By file: what stands there, and what is put in its place."""

NOT_HERE: Final = {
    "Test848RegexBrokerResolves": "takes records of __consumer_offsets for its own; passes alone",
}


@pytest.fixture(scope="module")
def kgo() -> Path:
    """The compiled tests, with the source that they are of beside them."""
    home = cache(f"franz-go-{VERSION}")
    try:
        if not (home / "kgo.test").exists():
            _build(home)
    except Missing as missing:
        pytest.skip(str(missing))
    return home


def _build(home: Path) -> None:
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as work:
        told = fetch(
            ("go", "mod", "download", "-json", f"{MODULE}@{VERSION}"),
            BUILD_SECONDS_MAX,
            where=Path(work),
            what="franz-go",
        )
        source = Path(work) / "source"
        shutil.copytree(json.loads(told)["Dir"], source)
        for path in (source, *source.rglob("*")):
            path.chmod(path.stat().st_mode | 0o200)  # modules are kept read-only
        build = ("go", "test", "-c", "-o", "kgo.test", "./pkg/kgo")
        fetch(build, BUILD_SECONDS_MAX, where=source, what="franz-go's tests")
        source.rename(home)


@pytest.fixture(scope="module")
def patient(kgo: Path) -> Path:
    """The same tests, compiled with what makes TestTxnEtl bear killed brokers."""
    ours = Path(__file__).parent / "go" / "patient_test.go"
    package = kgo / "pkg" / "kgo"
    with tempfile.TemporaryDirectory() as work:
        replaced = {str(package / ours.name): str(ours)}
        for name, (before, after) in PATIENCE.items():
            source = (package / name).read_text(encoding="utf-8")
            assert source.count(before) == 1, f"{name} has changed"
            changed = Path(work) / name
            changed.write_text(source.replace(before, after), encoding="utf-8")
            replaced[str(package / name)] = str(changed)
        overlay = Path(work) / "overlay.json"
        overlay.write_text(json.dumps({"Replace": replaced}), encoding="utf-8")
        build = ("go", "test", "-c", "-overlay", str(overlay), "-o", "patient.test", "./pkg/kgo")
        try:
            fetch(build, BUILD_SECONDS_MAX, where=kgo, what="franz-go's patient tests")
        except Missing as missing:
            pytest.skip(str(missing))
    return kgo / "patient.test"


def speaking(kgo: Path) -> list[str]:
    """The tests whose code asks for a client of a real server."""
    files = sorted((kgo / "pkg" / "kgo").glob("*_test.go"))
    return [
        name
        for file in files
        for name, body in FUNCTION.findall(file.read_text(encoding="utf-8"))
        if SPEAKS.search(body)
    ]


def run_kgo(
    kgo: Path, cluster: Trio, tests: list[str], *, records: int, program: str = "kgo.test"
) -> Ran:
    ended = run(
        [
            *(str(kgo / program), "-test.v", f"-test.timeout={SUITE_SECONDS_MAX}s"),
            *("-test.run", f"^({'|'.join(tests)})$"),
        ],
        SUITE_SECONDS_MAX + 30,
        where=kgo / "pkg" / "kgo",
        KGO_SEEDS=cluster.bootstrap,
        KGO_TEST_RF="3",
        KGO_TEST_RECORDS=str(records),
        KGO_LOG_LEVEL="none",
    )
    outcomes = parts(ended.stdout)
    for name in tests:  # a panic or the time-out ends those that have not said how they ended
        if not any(each == name or each.startswith(f"{name}/") for each in outcomes):
            outcomes[name] = "FAIL"
    said = ended.stdout[-4_000:]
    return Ran(
        tuple(name for name, outcome in outcomes.items() if outcome == "PASS"),
        {name: said for name, outcome in outcomes.items() if outcome == "FAIL"},
        tuple(name for name, outcome in outcomes.items() if outcome == "SKIP"),
    )


def parts(output: str) -> dict[str, str]:
    """How each test ended; of one that has parts, which stand below it and further in, only those.

    Names do not tell: a part may be called ``sticky``, and the one beside it ``sticky/static``.
    """
    told = OUTCOME.findall(output)
    depths = [len(indent) for indent, _, _ in told]
    has_parts = [after > depth for depth, after in pairwise((*depths, 0))]
    return {
        name: outcome
        for (_, outcome, name), whole in zip(told, has_parts, strict=True)
        if not whole
    }


def test_its_own_suite(kgo: Path, cluster: Trio, judge: Callable[..., dict[str, str]]) -> None:
    tests = speaking(kgo)
    assert set(tests) >= CHAINS
    ran = run_kgo(kgo, cluster, tests, records=RECORDS)
    suite = Suite("franz-go", VERSION, "kgo's tests that speak to a server, RF 3")
    assert ran.passed
    assert judge(suite, ran, NOT_HERE) == {}


def test_its_chain_of_groups_while_brokers_are_killed(
    kgo: Path, cluster: Trio, judge: Callable[..., dict[str, str]]
) -> None:
    with Killer(cluster, kills_max=KILLS_MAX) as killer:
        ran = run_kgo(kgo, cluster, [CHAIN_UNDER_KILLS], records=RECORDS_UNDER_KILLS)
    assert killer.kills
    suite = Suite("franz-go", VERSION, f"{CHAIN_UNDER_KILLS} of kgo, a broker killed every 10 s")
    assert judge(suite, ran, NOT_HERE) == {}


def test_its_chain_of_transactions_is_exact_while_brokers_are_killed(
    kgo: Path, patient: Path, cluster: Trio, judge: Callable[..., dict[str, str]]
) -> None:
    with Killer(cluster, kills_max=KILLS_MAX) as killer:
        ran = run_kgo(
            kgo, cluster, [TRANSACTIONS_UNDER_KILLS], records=RECORDS, program=patient.name
        )
    assert killer.kills
    what = f"{TRANSACTIONS_UNDER_KILLS} of kgo, made patient, a broker killed every 10 s"
    assert judge(Suite("franz-go", VERSION, what), ran, {}) == {}
