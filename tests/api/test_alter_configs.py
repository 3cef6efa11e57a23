from __future__ import annotations

from cotidal.api.alter_configs import decide
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)


def resource(kind, name, *values):
    return AlterConfigsResource(kind, name, tuple(AlterableConfig(*value) for value in values))


def test_what_is_not_named_goes_back_to_its_default(cluster, asked):
    for values in ((("retention.ms", "5"), ("segment.ms", "6")), (("segment.ms", "7"),)):
        request = AlterConfigsRequest((resource(2, "orders", *values),))
        reply = cluster.commit(decide(request, asked(2), cluster.controller))
        assert reply.responses[0] == (ErrorCode.NONE, None, 2, "orders")
    assert cluster.image.config(2, "orders") == {"segment.ms": "7"}


def test_each_resource_is_changed_or_refused_by_itself(cluster, asked):
    request = AlterConfigsRequest(
        (
            resource(2, "orders", ("retention.ms", "5")),
            resource(2, "lonely", ("retention.ms", "5"), ("retention.ms", "6")),
            resource(2, "none", ("retention.ms", "5")),
            resource(4, "2"),
            resource(4, "2"),
        )
    )
    reply = cluster.commit(decide(request, asked(2), cluster.controller))
    assert [(each.resource_name, each.error_code) for each in reply.responses] == [
        ("orders", ErrorCode.NONE),
        ("lonely", ErrorCode.INVALID_REQUEST),
        ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("2", ErrorCode.INVALID_REQUEST),
    ]
    assert cluster.image.config(2, "orders") == {"retention.ms": "5"}


def test_validate_only_writes_nothing(cluster, asked):
    request = AlterConfigsRequest((resource(2, "orders", ("retention.ms", "5")),), True)
    decision = decide(request, asked(2), cluster.controller)
    assert decision.records == ()
    assert decision.reply.responses[0].error_code == ErrorCode.NONE
