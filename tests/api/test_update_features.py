from __future__ import annotations

import pytest

from cotidal.api.update_features import decide
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.update_features import FeatureUpdateKey, UpdateFeaturesRequest

UPGRADE, SAFE_DOWNGRADE = 1, 2


def ask(*updates, **fields):
    return UpdateFeaturesRequest(
        feature_updates=tuple(FeatureUpdateKey(*update) for update in updates), **fields
    )


@pytest.mark.parametrize("version", [0, 1, 2])
def test_downgrade_has_to_be_asked_for_in_the_words_of_the_version(cluster, asked, version):
    plain = ask(("group.version", 0))
    reply = decide(plain, asked(version), cluster.controller).reply
    assert reply.error_code == ErrorCode.INVALID_UPDATE_VERSION
    meant = ask(("group.version", 0, version == 0, SAFE_DOWNGRADE if version else UPGRADE))
    reply = cluster.commit(decide(meant, asked(version), cluster.controller))
    assert reply.error_code == ErrorCode.NONE
    assert "group.version" not in cluster.image.features


@pytest.mark.parametrize("version", [1, 2])
def test_each_update_has_its_result_before_version_2(cluster, asked, version):
    request = ask(("transaction.version", 2), ("group.version", 9), ("nothing", 1))
    decision = decide(request, asked(version), cluster.controller)
    assert decision.records == ()
    assert decision.reply.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "group.version" in decision.reply.error_message
    wrong = ErrorCode.INVALID_UPDATE_VERSION
    codes = [each.error_code for each in decision.reply.results]
    assert codes == ([ErrorCode.NONE, wrong, wrong] if version < 2 else [])


def test_validate_only_writes_nothing(cluster, asked):
    request = ask(("group.version", 0, False, SAFE_DOWNGRADE), validate_only=True)
    decision = decide(request, asked(2), cluster.controller)
    assert (decision.records, decision.reply.error_code) == ((), ErrorCode.NONE)
