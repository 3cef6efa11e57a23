from __future__ import annotations

import pytest

from cotidal.core.cluster.decide.controllers import decide_register_controller
from cotidal.core.cluster.decide.features import SUPPORTED
from cotidal.core.cluster.image import ControllerNode, Endpoint
from cotidal.errors import ErrorCode, Refusal
from cotidal.values import Uuid

HERE = Endpoint("CONTROLLER", "c1", 9093)
NODE = ControllerNode(1, Uuid(b"c" * 16), (HERE,), SUPPORTED)


def test_controller_is_registered_once(scene):
    cluster = scene()
    cluster.apply(decide_register_controller(cluster.controller, NODE))
    assert cluster.image.controllers[1] == NODE
    assert decide_register_controller(cluster.controller, NODE) == ()
    moved = NODE._replace(endpoints=(Endpoint("CONTROLLER", "c2", 9093),))
    cluster.apply(decide_register_controller(cluster.controller, moved))
    assert cluster.image.controllers[1] == moved


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"endpoints": ()}, ErrorCode.INVALID_REGISTRATION),
        ({"endpoints": (HERE, HERE)}, ErrorCode.INVALID_REGISTRATION),
        ({"features": ()}, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_registration_that_makes_no_sense_is_refused(scene, wrong, error):
    refused = decide_register_controller(scene().controller, NODE._replace(**wrong))
    assert isinstance(refused, Refusal)
    assert refused.error is error
