"""Prints every message in every version as bytes, for comparison with another codec.

    python tools/wire_vectors.py [--samples 2] [NAME ...]

One JSON object a line: {"name", "version", "hex", "value"}. ``value`` is what Kafka's generated
`<Name>JsonConverter.read(JsonNode, version)` takes, so that a Java program can build the same
message and compare its bytes. The samples are the same on every run. Messages of our own, which no
other codec has, are left out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cotidal.api.registry import OURS
from cotidal.wire.codec import encode_record
from message_samples import Sampler, as_json, seeded
from message_schema import read_modules

SCHEMA = Path(__file__).resolve().parent.parent / "schema"


def vectors(names: list[str], samples: int) -> Iterator[dict[str, Any]]:
    for module in read_modules(SCHEMA):
        for message in module.messages:
            if message.key in OURS or (names and message.name not in names):
                continue
            for version in message.versions:
                for number in range(samples):
                    sampler = Sampler(module, seeded(message.name, version, number))
                    value = sampler.message(message, version)
                    yield {
                        "name": message.name,
                        "version": version,
                        "hex": encode_record(value, version).hex(),
                        "value": as_json(message.body, value, version),
                    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--samples", type=int, default=2)
    arguments = parser.parse_args()
    for vector in vectors(arguments.names, arguments.samples):
        print(json.dumps(vector))
    return 0


if __name__ == "__main__":
    sys.exit(main())
