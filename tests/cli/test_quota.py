from __future__ import annotations

import json
from typing import Any


def test_quotas_are_set_listed_and_cleared(cotidal: Any) -> None:
    assert cotidal("quota", "list") == (0, "no quotas are set\n", "")
    outcome = cotidal("quota", "set", "--client-id", "importer", "--produce", "10MB")
    assert outcome == (0, "the quota of client-id importer is set\n", "")
    wide = ("--user", "ANONYMOUS", "--client-id", "default", "--requests", "12.5")
    assert cotidal("quota", "set", *wide, "--mutations", "3").status == 0
    found = json.loads(cotidal("quota", "list", "--json").out)
    assert found == [
        {"entity": {"client-id": "importer"}, "quotas": {"producer_byte_rate": 10_000_000.0}},
        {
            "entity": {"client-id": None, "user": "ANONYMOUS"},
            "quotas": {"request_percentage": 12.5, "controller_mutation_rate": 3.0},
        },
    ]
    lines = cotidal("quota", "list").out.splitlines()
    assert lines[1].split() == ["client-id", "importer", "producer_byte_rate", "10000000"]
    assert lines[2].startswith("user ANONYMOUS, client-id (default)")

    assert cotidal("quota", "clear", "--client-id", "importer").status == 0
    assert cotidal("quota", "clear", *wide[:4]).status == 0
    assert cotidal("quota", "list").out == "no quotas are set\n"


def test_a_quota_that_is_not_there_cannot_be_cleared(cotidal: Any) -> None:
    outcome = cotidal("quota", "clear", "--user", "nobody")
    assert outcome == (1, "", "user nobody has no quota\n")


def test_whose_and_what_must_be_said(cotidal: Any) -> None:
    assert cotidal("quota", "set", "--produce", "1MB").status == 2
    assert cotidal("quota", "set", "--client-id", "a").status == 2


def test_a_quota_of_nothing_is_refused_by_the_cluster(cotidal: Any) -> None:
    outcome = cotidal("quota", "set", "--client-id", "a", "--requests", "0")
    assert outcome.status == 1
    assert "request_percentage must be more than 0" in outcome.err
