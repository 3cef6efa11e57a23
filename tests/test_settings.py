from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotidal import settings_table
from cotidal.settings import (
    BROKER,
    GROUP,
    TOPIC,
    Dynamic,
    Kind,
    OneOf,
    Setting,
    Source,
    Wrong,
    effective,
    effective_group,
    judge,
    nearest,
    parse,
    refusal_of_name,
    topic_settings,
)

ALL = [*TOPIC.values(), *BROKER.values(), *GROUP.values()]


@pytest.mark.parametrize("setting", ALL, ids=lambda setting: setting.name)
def test_every_row_has_a_sentence_and_a_default_that_it_accepts(setting):
    assert setting.doc.endswith(".")
    if setting.default is not None:
        assert not isinstance(parse(setting, setting.default), Wrong)


@pytest.mark.parametrize("setting", [*TOPIC.values(), *GROUP.values()], ids=lambda s: s.name)
def test_every_synonym_is_a_broker_setting_and_carries_the_default(setting):
    for synonym in setting.synonyms:
        assert synonym.name in BROKER
    if setting.synonyms and setting.name in TOPIC:
        held = effective(setting.name, topic={})
        assert (held.text, held.source) == (setting.default, Source.DEFAULT)


def test_no_name_stands_in_two_rows_of_the_broker_table():
    rows = (
        *settings_table._IDENTITY_ROWS,
        *settings_table._QUORUM_ROWS,
        *settings_table._SOCKET_ROWS,
        *settings_table._STORAGE_ROWS,
        *settings_table._SCALED_ROWS,
        *settings_table._named_by_topics(),
        *settings_table._REPLICATION_ROWS,
        *settings_table._COORDINATOR_ROWS,
        *settings_table._IGNORED_ROWS,
        *settings_table._OUR_ROWS,
    )
    assert len(rows) == len(BROKER)


def test_refused_names_are_not_known_names():
    assert not set(settings_table.REFUSED) & {setting.name for setting in ALL}


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("replica.lag.time.max.ms", "10000"),
        ("broker.session.timeout.ms", "3000"),
        ("broker.heartbeat.interval.ms", "500"),
        ("min.insync.replicas", "1"),
        ("message.max.bytes", "1048588"),
        ("log.segment.bytes", "1073741824"),
        ("log.retention.hours", "168"),
        ("log.retention.ms", None),
        ("auto.create.topics.enable", "true"),
    ],
)
def test_defaults_that_the_documents_promise(name, default):
    assert BROKER[name].default == default


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("retention.ms", " 5 ", 5),
        ("retention.ms", "-1", -1),
        ("retention.ms", "+7", 7),
        ("preallocate", "TRUE", True),
        ("min.cleanable.dirty.ratio", "0.25", 0.25),
        ("cleanup.policy", "compact, delete", ("compact", "delete")),
        ("cleanup.policy", "", ()),
        ("compression.type", "zstd", "zstd"),
        ("segment.bytes", "2147483647", 2147483647),
    ],
)
def test_text_becomes_a_value_of_its_kind(name, text, value):
    assert parse(TOPIC[name], text) == value


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("retention.ms", "soon", "whole number"),
        ("retention.ms", "1.5", "whole number"),
        ("retention.ms", "", "whole number"),
        ("retention.ms", "٣", "whole number"),
        ("retention.ms", "9" * 4000, "whole number"),
        ("retention.ms", "9223372036854775808", "64 bits"),
        ("segment.bytes", "2147483648", "32 bits"),
        ("segment.bytes", "1", "at least 1048576"),
        ("compression.gzip.level", "10", "at most 9"),
        ("preallocate", "yes", "true or false"),
        ("min.cleanable.dirty.ratio", "nan", "a number"),
        ("min.cleanable.dirty.ratio", "much", "a number"),
        ("min.cleanable.dirty.ratio", "1.1", "at most 1"),
        ("cleanup.policy", "compact,burn", "only compact, delete"),
        ("cleanup.policy", "compact,compact", "twice"),
        ("cleanup.policy", "compact,,delete", "empty"),
        ("compression.type", "rar", "one of uncompressed"),
    ],
)
def test_wrong_text_is_answered_with_the_name_the_text_and_what_is_right(name, text, says):
    wrong = parse(TOPIC[name], text)
    assert isinstance(wrong, Wrong)
    assert wrong.sentence.startswith(f"{name} is '")
    assert says in wrong.sentence
    assert len(wrong.sentence) < 250


def test_password_is_not_shown():
    secret = Setting("x.password", Kind.PASSWORD, None, "Secret.", OneOf(("a",)))
    wrong = parse(secret, "hunter2")
    assert isinstance(wrong, Wrong)
    assert "hunter2" not in wrong.sentence


@given(st.sampled_from(ALL), st.text())
def test_any_text_is_parsed_or_refused_with_a_sentence(setting, text):
    value = parse(setting, text)
    if isinstance(value, Wrong):
        assert value.sentence


def test_nearest_name_is_offered():
    assert nearest("min.insync.replica") == "min.insync.replicas"
    assert nearest("retention.mss", TOPIC) == "retention.ms"
    assert nearest("qqqqqqqq") is None


def test_unknown_name_is_told_apart_from_a_refused_one():
    unknown = judge(BROKER, "num.partition", "3")
    assert unknown == Wrong(
        "num.partition is not a setting that is known here; did you mean num.partitions?",
        unknown=True,
    )
    removed = judge(BROKER, "replica.lag.max.messages", "4000")
    assert removed == Wrong(
        "replica.lag.max.messages was removed; use replica.lag.time.max.ms", unknown=False
    )
    assert judge(BROKER, "num.partitions", "3") == 3


def test_what_would_be_dangerous_to_ignore_is_refused():
    for name in ("ssl.keystore.location", "sasl.enabled.mechanisms", "authorizer.class.name"):
        wrong = judge(BROKER, name, "x")
        assert isinstance(wrong, Wrong)
        assert not wrong.unknown, name
    assert "not supported" in refusal_of_name(BROKER, "ssl.keystore.location")


def test_precedence_is_topic_broker_cluster_static_default():
    layers = {
        "topic": {"retention.ms": "1"},
        "broker": {"log.retention.ms": "2"},
        "cluster": {"log.retention.ms": "3"},
        "static": {"log.retention.ms": "4"},
    }
    seen = []
    for name in ("topic", "broker", "cluster", "static"):
        held = effective("retention.ms", **layers)
        seen.append((held.value, held.source))
        layers[name] = {}
    held = effective("retention.ms", **layers)
    seen.append((held.value, held.source))
    assert seen == [
        (1, Source.TOPIC),
        (2, Source.BROKER),
        (3, Source.CLUSTER),
        (4, Source.STATIC),
        (604800000, Source.DEFAULT),
    ]


def test_finer_unit_beats_coarser_and_is_converted():
    static = {"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}
    assert effective("retention.ms", topic={}, static=static).value == 4
    del static["log.retention.ms"]
    assert effective("retention.ms", topic={}, static=static).text == "180000"
    del static["log.retention.minutes"]
    assert effective("retention.ms", topic={}, static=static).text == "7200000"
    static["log.retention.hours"] = "-1"
    assert effective("retention.ms", topic={}, static=static).value == -1


def test_synonyms_tell_everything_the_winner_won_against():
    held = effective(
        "max.message.bytes",
        topic={"max.message.bytes": "1"},
        cluster={"message.max.bytes": "2"},
        static={"message.max.bytes": "3"},
    )
    assert [(origin.name, origin.text, origin.source) for origin in held.synonyms] == [
        ("max.message.bytes", "1", Source.TOPIC),
        ("message.max.bytes", "2", Source.CLUSTER),
        ("message.max.bytes", "3", Source.STATIC),
        ("message.max.bytes", "1048588", Source.DEFAULT),
    ]


def test_broker_setting_has_no_topic_layer():
    assert effective("num.partitions", static={"num.partitions": "4"}).value == 4
    assert effective("node.id").text is None


def test_group_falls_back_to_the_brokers_names():
    static = {"group.consumer.session.timeout.ms": "50000"}
    name = "consumer.session.timeout.ms"
    assert effective_group(name, group={}, static=static).value == 50000
    held = effective_group(name, group={name: "46000"}, static=static)
    assert (held.value, held.source) == (46000, Source.GROUP)


def test_log_is_opened_with_every_topic_setting():
    held = topic_settings({"retention.ms": "5"}, static={"log.segment.bytes": "2000000"})
    assert set(held) == set(TOPIC) - {"internal.segment.bytes"}
    assert (held["retention.ms"], held["segment.bytes"]) == ("5", "2000000")


def test_tests_may_have_smaller_segments():
    assert topic_settings({"internal.segment.bytes": "4096"})["segment.bytes"] == "4096"


@pytest.mark.parametrize(
    ("name", "written", "held"),
    [
        ("retention.ms", "6000\x1c", "6000"),  # trimmed by str.strip, refused by int
        ("retention.ms", " +5\n", "5"),
        ("preallocate", " TRUE ", "true"),
        ("cleanup.policy", " compact , delete", "compact,delete"),
        ("compression.type", "lz4 ", "lz4"),
    ],
)
def test_what_a_log_is_told_is_the_value_and_not_what_stood_around_it(
    name: str, written: str, held: str
) -> None:
    assert topic_settings({name: written})[name] == held


def test_thread_counts_are_accepted_and_say_that_they_change_nothing():
    assert BROKER["num.network.threads"].ignored
    assert not isinstance(judge(BROKER, "num.network.threads", "3"), Wrong)


def test_topic_synonyms_may_be_changed_for_the_whole_cluster():
    for name in ("log.retention.ms", "min.insync.replicas", "message.max.bytes"):
        assert BROKER[name].dynamic is Dynamic.CLUSTER_WIDE


def test_import_brings_nothing_heavy():
    code = (
        "import sys; import cotidal.settings; "
        "print([m for m in ('asyncio', 'difflib', 'inspect', 'logging', 'dataclasses') "
        "if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
