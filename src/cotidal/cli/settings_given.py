"""``name=value`` settings on a command line. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import click


def parse_settings(given: Iterable[str]) -> dict[str, str]:
    """Names to values; a usage error for what is not ``name=value``, or is named twice."""
    settings: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise click.UsageError(f"'{text}' is not a setting; write it as name=value")
        if name in settings:
            raise click.UsageError(f"'{name}' is given twice")
        settings[name] = value.strip()
    return settings
