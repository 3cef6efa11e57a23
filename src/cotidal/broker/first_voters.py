"""Who votes at first, as formatting is told: `id@host:port:directory-id,...`. KIP-853.

A mistake is one sentence (ValueError).
"""

from __future__ import annotations

from cotidal.broker.config import BrokerConfig, controller_addresses
from cotidal.messages.records.quorum import Endpoint, KRaftVersionFeature, VotersRecordVoter
from cotidal.values import ZERO_UUID, NodeId, Uuid, uuid_from_text

SUPPORTED = KRaftVersionFeature(0, 1)


def standalone(config: BrokerConfig) -> tuple[VotersRecordVoter, ...]:
    """This node alone; its directory id is not known yet and stands as zero."""
    addresses = controller_addresses(config, config.listeners)
    if not addresses:
        raise ValueError("only a node with process.roles=controller and its listener can vote")
    if any(address.port == 0 for address in addresses):
        raise ValueError("a voter's listener needs a port of its own; set one in listeners")
    endpoints = tuple(Endpoint(*address) for address in addresses)
    return (VotersRecordVoter(config.node_id, ZERO_UUID, endpoints, SUPPORTED),)


def parse_voters(text: str, listener: str) -> tuple[VotersRecordVoter, ...]:
    """``listener``: the name of the controllers' listener, which the text does not have."""
    voters: list[VotersRecordVoter] = []
    for entry in (part.strip() for part in text.split(",")):
        number, _, rest = entry.partition("@")
        address, _, directory = rest.rpartition(":")
        host, _, port = address.rpartition(":")
        if not (number.isdigit() and host and port.isdigit() and 0 < int(port) <= 65535):
            raise ValueError(f"'{entry}' is not of the form id@host:port:directory-id")
        if any(voter.voter_id == int(number) for voter in voters):
            raise ValueError(f"node {number} stands there twice")
        host = host.removeprefix("[").removesuffix("]")
        point = Endpoint(listener, host, int(port))
        voters.append(
            VotersRecordVoter(int(number), uuid_from_text(directory), (point,), SUPPORTED)
        )
    return tuple(sorted(voters, key=lambda voter: voter.voter_id))


def directory_of(voters: tuple[VotersRecordVoter, ...], node_id: NodeId) -> Uuid:
    """The directory id that this node must be formatted with."""
    for voter in voters:
        if voter.voter_id == node_id:
            return voter.voter_directory_id
    raise ValueError(f"node {node_id} is not among the first voters; leave them out for it")
