"""The schema reader and the samples live in tools/: tests of the wire use them as they are."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

HERE = Path(__file__).resolve().parent
for place in (HERE, HERE.parents[1] / "tools"):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))

# Two cores shared by many: a slow example says nothing about the code.
settings.register_profile(
    "wire", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("wire")
