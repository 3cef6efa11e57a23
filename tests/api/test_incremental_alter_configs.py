from __future__ import annotations

from cotidal.api.incremental_alter_configs import decide
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

SET, DELETE, APPEND = 0, 1, 2


def ask(*resources, **fields):
    return IncrementalAlterConfigsRequest(
        resources=tuple(
            AlterConfigsResource(kind, name, tuple(AlterableConfig(*change) for change in changes))
            for kind, name, *changes in resources
        ),
        **fields,
    )


def test_only_what_is_named_changes(cluster, asked):
    first = ask((2, "orders", ("retention.ms", SET, "5"), ("segment.ms", SET, "6")))
    second = ask(
        (2, "orders", ("retention.ms", DELETE, None), ("cleanup.policy", APPEND, "compact"))
    )
    for request in (first, second):
        reply = cluster.commit(decide(request, asked(1), cluster.controller))
        assert reply.responses[0] == (ErrorCode.NONE, None, 2, "orders")
    assert cluster.image.config(2, "orders") == {
        "segment.ms": "6",
        "cleanup.policy": "delete,compact",
    }


def test_refusal_names_the_setting_and_the_nearest_known_one(cluster, asked):
    reply = decide(ask((2, "orders", ("retention", SET, "5"))), asked(1), cluster.controller).reply
    assert reply.responses[0].error_code == ErrorCode.INVALID_CONFIG
    assert "did you mean retention.ms?" in reply.responses[0].error_message


def test_one_wrong_change_leaves_the_whole_resource_alone(cluster, asked):
    request = ask(
        (2, "orders", ("retention.ms", SET, "5"), ("segment.ms", SET, "x")),
        (2, "lonely", ("retention.ms", SET, "5")),
    )
    reply = cluster.commit(decide(request, asked(1), cluster.controller))
    codes = [each.error_code for each in reply.responses]
    assert codes == [ErrorCode.INVALID_CONFIG, ErrorCode.NONE]
    assert cluster.image.config(2, "orders") == {}
    assert cluster.image.config(2, "lonely") == {"retention.ms": "5"}


def test_validate_only_writes_nothing(cluster, asked):
    request = ask((2, "orders", ("retention.ms", SET, "5")), validate_only=True)
    decision = decide(request, asked(1), cluster.controller)
    assert decision.records == ()
    assert decision.reply.responses[0].error_code == ErrorCode.NONE


def test_resource_named_twice_is_refused(cluster, asked):
    change = ("retention.ms", SET, "5")
    decision = decide(
        ask((2, "orders", change), (2, "orders", change)), asked(1), cluster.controller
    )
    assert decision.records == ()
    assert [each.error_code for each in decision.reply.responses] == [ErrorCode.INVALID_REQUEST]
