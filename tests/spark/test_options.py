from __future__ import annotations

import pytest

from cotidal.spark.failures import WrongOption
from cotidal.spark.options import (
    EARLIEST,
    LATEST,
    SOURCE_OPTIONS,
    Assign,
    AtOffsets,
    AtTimestamps,
    Everywhere,
    SourceOptions,
    Subscribe,
    SubscribePattern,
    parse_seconds,
    parse_source,
)

LEAST = {"kafka.bootstrap.servers": "a:1", "subscribe": "orders"}


def parsed(*, streaming: bool = False, **options: str) -> SourceOptions:
    given = {name.replace("_", "."): value for name, value in options.items()}
    return parse_source({**LEAST, **given}, streaming=streaming)


def test_a_batch_begins_at_the_beginning_and_a_stream_at_the_end() -> None:
    assert parsed().starting == Everywhere(EARLIEST)
    assert parsed(streaming=True).starting == Everywhere(LATEST)
    assert parsed().ending == Everywhere(LATEST)


def test_names_of_options_have_no_case() -> None:
    assert parsed(STARTINGOFFSETS="earliest", MinPartitions="7").partitions_min == 7


def test_what_is_subscribed_to_has_three_forms() -> None:
    bare = {"kafka.bootstrap.servers": "a:1"}
    for name, value, meant in (
        ("subscribe", "a, b", Subscribe(("a", "b"))),
        ("subscribePattern", "ord.*", SubscribePattern("ord.*")),
        ("assign", '{"a": [0, 2]}', Assign((("a", 0), ("a", 2)))),
    ):
        assert parse_source({**bare, name: value}, streaming=False).selection == meant


def test_bounds_are_ends_offsets_or_times() -> None:
    assert parsed(startingOffsets='{"orders": {"0": 23, "1": -2}}').starting == AtOffsets(
        {("orders", 0): 23, ("orders", 1): EARLIEST}
    )
    assert parsed(endingTimestamp="1700").ending == AtTimestamps(None, 1700)
    assert parsed(startingOffsetsByTimestamp='{"orders": {"0": 5}}').starting == AtTimestamps(
        {("orders", 0): 5}
    )


def test_a_time_comes_before_offsets_as_in_the_stock_format() -> None:
    assert parsed(startingTimestamp="9", startingOffsets="earliest").starting == AtTimestamps(
        None, 9
    )


def test_delays_are_written_as_spark_writes_them() -> None:
    for text, seconds in (("500ms", 0.5), ("90s", 90), ("15m", 900), ("2 h", 7200), ("250", 0.25)):
        assert parse_seconds("maxTriggerDelay", text, 1.0) == seconds
    assert parse_seconds("maxTriggerDelay", None, 1.0) == 1.0


def test_clients_settings_that_do_not_concern_us_are_passed_over() -> None:
    assert parsed(kafka_fetch_min_bytes="7").timeout_s == parsed().timeout_s
    assert parsed(kafka_request_timeout_ms="1500").timeout_s == 1.5


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"startingOffset": "earliest"}, "did you mean startingOffsets?"),
        ({"colour": "red"}, "there is no option colour"),
        ({"startingOffsets": "latest"}, "of a batch query cannot be latest"),
        ({"startingOffsets": '{"orders": {"0": -1}}'}, "of a batch query cannot be latest"),
        ({"endingOffsets": "earliest"}, "endingOffsets cannot be earliest"),
        ({"startingOffsets": "first"}, 'write it as {"orders"'),
        ({"startingOffsets": '{"orders": 3}'}, 'write it as {"orders"'),
        ({"startingOffsets": '{"orders": {"0": -3}}'}, "partition 0 of orders cannot be -3"),
        ({"minPartitions": "many"}, "write a whole number from 1 on"),
        ({"maxOffsetsPerTrigger": "0"}, "write a whole number from 1 on"),
        ({"failOnDataLoss": "maybe"}, "write true or false"),
        ({"maxTriggerDelay": "soon"}, "write a time such as"),
        ({"subscribePattern": "a"}, "exclude each other"),
        ({"kafka.bootstrap.servers": "a:b"}, "not an address of a broker"),
        ({"kafka.isolation.level": "some"}, "write read_committed or"),
        ({"kafka.group.protocol": "x", "kafka.sasl.mechanism": "PLAIN"}, "no TLS and no SASL"),
        ({"kafka.security.protocol": "SSL"}, "speaks PLAINTEXT only"),
        ({"kafka.auto.offset.reset": "latest"}, "write startingOffsets instead"),
        ({"startingOffsetsByTimestampStrategy": "guess"}, "write error or latest"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(WrongOption) as told:
        parse_source({**LEAST, **options}, streaming=False)
    assert sentence in str(told.value)
    assert "\n" not in str(told.value)


def test_what_lacks_is_named() -> None:
    with pytest.raises(WrongOption, match=r"kafka\.bootstrap\.servers lacks"):
        parse_source({"subscribe": "orders"}, streaming=False)
    with pytest.raises(WrongOption, match="nothing is subscribed to"):
        parse_source({"kafka.bootstrap.servers": "a:1"}, streaming=False)
    with pytest.raises(WrongOption, match="a stream has no end"):
        parsed(streaming=True, endingOffsets="latest")


def test_every_option_is_on_the_page() -> None:
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "spark.md").read_text()
    assert [name for name in SOURCE_OPTIONS if f"`{name}`" not in page] == []
