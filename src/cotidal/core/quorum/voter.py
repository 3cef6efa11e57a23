"""A KRaft voter. Pure. KIP-595, as far as a quorum of one needs it.

States and what moves where:

    Unattached   knows no leader                                 -> Leader (it is the majority)
    Leader       appends, commits what a majority has persisted  -> (another node's higher epoch)

  DURABLE_BEFORE_TOLD  the epoch and the vote are on disk before anything is written in that epoch,
                       and a record is committed only when it is on the disks of a majority: here,
                       when its own fsync has been reported.

A leader's first record in its epoch is LeaderChangeMessage; nothing is committed before that is.
A restarted leader never leads its old epoch again: it elects itself into the next one. Elections
among several voters, replication between them and snapshots belong in this room too.
"""

from __future__ import annotations

from typing import NamedTuple

from cotidal.invariants import DURABLE_BEFORE_TOLD
from cotidal.messages.records.quorum import (
    LeaderChangeMessage,
    LeaderChangeMessageVoter,
    QuorumStateData,
)
from cotidal.values import NO_EPOCH, LeaderEpoch, NodeId, Offset, Uuid


class Elected(NamedTuple):
    """To be made durable in this order: the vote, then the first record of the epoch."""

    state: QuorumStateData
    leader_change: LeaderChangeMessage


class Voter:
    """One voter of the metadata quorum. Its log is ``__cluster_metadata-0``."""

    __slots__ = ("directory_id", "end_offset", "epoch", "high_watermark", "is_leader", "node_id")

    def __init__(self, node_id: NodeId, directory_id: Uuid) -> None:
        self.node_id = node_id
        self.directory_id = directory_id
        self.epoch = NO_EPOCH
        self.is_leader = False
        self.end_offset = Offset(0)
        self.high_watermark = Offset(0)

    def elect(
        self, *, stored: QuorumStateData | None, end_offset: Offset, last_epoch: LeaderEpoch
    ) -> Elected:
        """Become leader of the next epoch: this voter alone is a majority."""
        known = -1 if stored is None else stored.leader_epoch
        self.epoch = LeaderEpoch(max(known, last_epoch, 0) + 1)
        self.is_leader = True
        self.end_offset = end_offset
        me = LeaderChangeMessageVoter(self.node_id)  # Kafka reads version 0: no directory id
        return Elected(
            QuorumStateData(
                leader_id=self.node_id,
                leader_epoch=self.epoch,
                voted_id=self.node_id,
                voted_directory_id=self.directory_id,
            ),
            LeaderChangeMessage(
                version=0, leader_id=self.node_id, voters=(me,), granting_voters=(me,)
            ),
        )

    def append(self, record_count: int) -> Offset:
        """Give the next records their place; returns the first offset."""
        base_offset = self.end_offset
        self.end_offset = Offset(base_offset + record_count)
        return base_offset

    def on_persisted(self, end_offset: Offset) -> None:
        """Everything below is on the disk of a majority: committed."""
        assert self.high_watermark <= end_offset <= self.end_offset, DURABLE_BEFORE_TOLD
        self.high_watermark = end_offset
