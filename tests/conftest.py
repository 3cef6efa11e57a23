"""For all tests: a machine may be busy, so no generated example has to come quickly."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")
