from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotidal.core.cluster.image import (
    RECOVERING,
    TOPIC_RESOURCE,
    Image,
    check,
)
from cotidal.messages.records import metadata as m
from cotidal.values import Uuid

ids = st.binary(min_size=16, max_size=16).map(Uuid)
names = st.text("abc._-", min_size=1, max_size=5)
nodes = st.lists(st.integers(0, 6), max_size=4, unique=True).map(tuple)
endpoints = st.builds(
    m.BrokerEndpoint,
    name=names,
    host=names,
    port=st.integers(1, 65535),
    security_protocol=st.just(0),
)
features = st.builds(
    m.BrokerFeature, name=names, min_supported_version=st.just(0), max_supported_version=st.just(1)
)  # fmt: skip


@st.composite
def images(draw):
    """An image made of records of every family, each of which can follow those before it."""
    image = Image()
    for name in draw(st.lists(names, max_size=4, unique=True)):
        image.replay(m.FeatureLevelRecord(name, draw(st.integers(0, 30))))
    for number in draw(nodes):
        image.replay(
            m.RegisterBrokerRecord(
                broker_id=number,
                incarnation_id=draw(ids),
                broker_epoch=draw(st.integers(0, 99)),
                end_points=tuple(draw(st.lists(endpoints, max_size=2))),
                features=tuple(draw(st.lists(features, max_size=2))),
                rack=draw(st.none() | names),
                fenced=draw(st.booleans()),
                in_controlled_shutdown=draw(st.booleans()),
                log_dirs=tuple(draw(st.lists(ids, max_size=2))),
                cordoned_log_dirs=draw(st.none() | st.lists(ids, max_size=2).map(tuple)),
            )
        )
    for number in draw(nodes):
        image.replay(
            m.RegisterControllerRecord(
                controller_id=number,
                incarnation_id=draw(ids),
                end_points=(m.ControllerEndpoint("CONTROLLER", "h", 9093, 0),),
                features=(m.ControllerFeature("kraft.version", 0, 1),),
            )
        )
    for name, topic_id in draw(
        st.lists(st.tuples(names, ids), max_size=3, unique_by=(lambda t: t[0], lambda t: t[1]))
    ):
        image.replay(m.TopicRecord(name, topic_id))
        for number in range(draw(st.integers(0, 3))):
            replicas = draw(nodes)
            image.replay(
                m.PartitionRecord(
                    partition_id=number,
                    topic_id=topic_id,
                    replicas=replicas,
                    isr=draw(nodes),
                    removing_replicas=draw(nodes),
                    adding_replicas=draw(nodes),
                    leader=draw(st.integers(-1, 6)),
                    leader_recovery_state=draw(st.integers(0, 1)),
                    leader_epoch=draw(st.integers(0, 9)),
                    partition_epoch=draw(st.integers(0, 9)),
                    directories=tuple(draw(ids) for _ in replicas),
                    eligible_leader_replicas=draw(st.none() | nodes),
                    last_known_elr=draw(st.none() | nodes),
                )
            )
            if draw(st.booleans()):
                image.replay(
                    m.PartitionChangeRecord(
                        partition_id=number,
                        topic_id=topic_id,
                        isr=draw(st.none() | nodes),
                        leader=draw(st.integers(-2, 6)),
                        leader_recovery_state=draw(st.integers(-1, 1)),
                        eligible_leader_replicas=draw(st.none() | nodes),
                    )
                )
        for key in draw(st.lists(names, max_size=2)):
            image.replay(m.ConfigRecord(TOPIC_RESOURCE, name, key, draw(st.none() | names)))
    for kind in draw(st.lists(st.sampled_from(["user", "client-id"]), max_size=2)):
        entity = (m.EntityData(kind, draw(st.none() | names)),)
        image.replay(m.ClientQuotaRecord(entity, "rate", 1.5, False))
    image.replay(m.ProducerIdsRecord(1, 1, draw(st.integers(0, 9000))))
    image.replay(m.AccessControlEntryRecord(id=draw(ids), principal="User:a"))
    image.replay(m.UserScramCredentialRecord(name="a", mechanism=1))
    image.replay(m.DelegationTokenRecord(token_id=draw(names)))
    return image


@given(images())
def test_records_of_an_image_make_an_equal_image(image):
    twin = Image()
    for record in image.records():
        twin.replay(record)
    assert twin == image


@given(images())
def test_copy_is_equal_and_shares_nothing_that_changes(image):
    before = list(image.records())
    twin = image.copy()
    assert twin == image
    assert twin.version == image.version
    for topic in list(twin.topics.values()):
        twin.replay(m.ConfigRecord(TOPIC_RESOURCE, topic.name, "retention.ms", "5"))
        for number in topic.partitions:
            twin.replay(m.PartitionChangeRecord(number, topic.topic_id, leader=3))
        twin.replay(m.RemoveTopicRecord(topic.topic_id))
    for broker in list(twin.brokers.values()):
        twin.replay(m.FenceBrokerRecord(broker.node_id, broker.epoch))
    twin.replay(m.TopicRecord("new", Uuid(b"n" * 16)))
    assert list(image.records()) == before
    assert twin != image


def with_partition(**fields):
    image = Image()
    image.replay(m.TopicRecord("orders", Uuid(b"o" * 16)))
    given = {
        "replicas": (1, 2),
        "isr": (1, 2),
        "leader": 1,
        "leader_epoch": 3,
        "partition_epoch": 4,
    }
    image.replay(m.PartitionRecord(0, Uuid(b"o" * 16), **{**given, **fields}))
    return image


def test_change_that_names_a_leader_raises_both_epochs_also_for_the_same_leader():
    image = with_partition()
    image.replay(m.PartitionChangeRecord(0, Uuid(b"o" * 16), leader=1))
    after = image.partition("orders", 0)
    assert (after.leader, after.leader_epoch, after.partition_epoch) == (1, 4, 5)


def test_change_without_a_leader_raises_the_partition_epoch_only():
    image = with_partition()
    image.replay(m.PartitionChangeRecord(0, Uuid(b"o" * 16), isr=(1,), leader_recovery_state=1))
    after = image.partition("orders", 0)
    assert (after.isr, after.leader_epoch, after.partition_epoch) == ((1,), 3, 5)
    assert after.recovery_state == RECOVERING


def test_clearing_the_elr_changes_only_partitions_that_have_one():
    for topic_name in ("", "orders"):
        image = with_partition(eligible_leader_replicas=(2,), isr=(1,))
        image.replay(m.PartitionRecord(1, Uuid(b"o" * 16), (1,), (1,), partition_epoch=4))
        image.replay(m.ClearElrRecord(topic_name))
        assert image.partition("orders", 0).elr == ()
        assert image.partition("orders", 0).partition_epoch == 5
        assert image.partition("orders", 1).partition_epoch == 4


def test_removing_a_topic_removes_its_settings_and_its_id():
    image = with_partition()
    image.replay(m.ConfigRecord(TOPIC_RESOURCE, "orders", "retention.ms", "5"))
    image.replay(m.RemoveTopicRecord(Uuid(b"o" * 16)))
    assert image == Image()


def test_broker_change_says_only_what_it_says():
    image = Image()
    image.replay(m.RegisterBrokerRecord(1, False, Uuid(b"i" * 16), 7, fenced=True))
    image.replay(m.BrokerRegistrationChangeRecord(1, 7, fenced=-1))
    assert image.is_active(1)
    image.replay(m.BrokerRegistrationChangeRecord(1, 7, in_controlled_shutdown=1))
    assert (image.brokers[1].fenced, image.brokers[1].in_controlled_shutdown) == (False, True)
    image.replay(m.BrokerRegistrationChangeRecord(1, 7, fenced=1, log_dirs=(Uuid(b"d" * 16),)))
    assert (image.brokers[1].fenced, image.brokers[1].in_controlled_shutdown) == (True, True)
    assert image.brokers[1].log_dirs == (Uuid(b"d" * 16),)


def test_older_fence_records_are_told_apart():
    image = Image()
    image.replay(m.RegisterBrokerRecord(1, False, Uuid(b"i" * 16), 7, fenced=True))
    image.replay(m.UnfenceBrokerRecord(1, 7))
    assert image.is_active(1)
    image.replay(m.FenceBrokerRecord(1, 7))
    assert not image.is_active(1)
    image.replay(m.UnregisterBrokerRecord(1, 7))
    assert image == Image()


def test_deleted_values_leave_nothing_behind():
    image = Image()
    entity = (m.EntityData("user", "a"),)
    image.replay(m.ConfigRecord(4, "", "min.insync.replicas", "2"))
    image.replay(m.ConfigRecord(4, "", "min.insync.replicas", None))
    image.replay(m.ClientQuotaRecord(entity, "rate", 1.0, False))
    image.replay(m.ClientQuotaRecord(entity, "rate", 1.0, True))
    image.replay(m.FeatureLevelRecord("group.version", 1))
    image.replay(m.FeatureLevelRecord("group.version", 0))
    image.replay(m.AccessControlEntryRecord(id=Uuid(b"a" * 16)))
    image.replay(m.RemoveAccessControlEntryRecord(Uuid(b"a" * 16)))
    image.replay(m.UserScramCredentialRecord("u", 1))
    image.replay(m.RemoveUserScramCredentialRecord("u", 1))
    image.replay(m.DelegationTokenRecord(token_id="t"))
    image.replay(m.RemoveDelegationTokenRecord("t"))
    assert image == Image()


def test_no_op_does_not_spoil_caches():
    image = with_partition()
    version = image.version
    image.replay(m.NoOpRecord())
    assert image.version == version
    image.replay(m.ProducerIdsRecord(1, 1, 1000))
    assert image.version > version


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("C1", {"isr": (1, 9)}),
        ("C1", {"eligible_leader_replicas": (2,)}),
        ("C2", {"leader": 2, "isr": (1,)}),
    ],
)
def test_check_names_the_broken_invariant(name, fields):
    with pytest.raises(AssertionError, match=name):
        check(with_partition(**fields))


def test_check_notices_a_fenced_member_of_an_isr_where_elr_is_on():
    image = with_partition()
    image.replay(m.RegisterBrokerRecord(2, fenced=True))
    check(image)
    image.replay(m.FeatureLevelRecord("eligible.leader.replicas.version", 1))
    with pytest.raises(AssertionError, match="C4"):
        check(image)
