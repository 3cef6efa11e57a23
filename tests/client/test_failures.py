from __future__ import annotations

import pytest

from cotidal.client.failures import Refused, UnknownTopic, known_code, raise_for
from cotidal.errors import ErrorCode


def test_an_unknown_topic_is_answered_with_the_nearest_name() -> None:
    assert str(UnknownTopic("ordesr", ["payments", "orders"])) == (
        "topic 'ordesr' does not exist; did you mean 'orders'?"
    )


def test_no_name_is_suggested_when_none_is_near() -> None:
    assert str(UnknownTopic("x", ["payments"])) == "topic 'x' does not exist"


def test_the_clusters_own_sentence_wins_over_the_tables() -> None:
    assert str(Refused("topic 'a'", ErrorCode.INVALID_CONFIG, "No such thing.")) == (
        "topic 'a': No such thing"
    )


def test_code_zero_raises_nothing() -> None:
    raise_for(0, "topic 'a'")


def test_a_code_of_a_later_protocol_is_an_unknown_error() -> None:
    assert known_code(9999) is ErrorCode.UNKNOWN_SERVER_ERROR
    with pytest.raises(Refused) as caught:
        raise_for(9999, "topic 'a'", "something new")
    assert str(caught.value) == "topic 'a': something new"


def test_what_the_cluster_names_itself_is_not_named_twice() -> None:
    assert str(Refused("topic 'a'", ErrorCode.TOPIC_ALREADY_EXISTS, "topic 'a' exists")) == (
        "topic 'a' exists"
    )
