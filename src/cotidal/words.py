"""Quantities as people say them. Pure."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """So many of something.

    >>> counted(1, "run"), counted(1200, "run")
    ('1 run', '1,200 runs')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
