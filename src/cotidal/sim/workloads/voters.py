"""An administrator who keeps changing the voters: asks who votes, then adds or removes one.

Which one is drawn, the leader as likely as any; there are at least ``fewest`` voters, so that a
majority outlives the faults of a plan. What became of a change is seen in the next description.
Told that the voters are static, it raises kraft.version.
"""

from __future__ import annotations

from typing import Final

from cotidal.errors import ErrorCode
from cotidal.messages.rpc.add_raft_voter import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    Listener,
)
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
)
from cotidal.messages.rpc.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from cotidal.messages.rpc.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from cotidal.sim.agenda import SECOND
from cotidal.sim.probes import (
    LEADER_REMOVED,
    VERSION_RAISED,
    VOTER_ADDED,
    VOTER_REMOVED,
    Probes,
)
from cotidal.sim.workloads.client import Client
from cotidal.sim.world import CONTROLLER_PORT, World
from cotidal.values import NodeId, Uuid

TIMEOUT_MS: Final = 3_000
ERR_ONE_IN: Final = 5
NOBODY: Final = NodeId(77)
NO_SUCH_DISK: Final = Uuid(b"?" * 16)

_DESCRIBE: Final = DescribeQuorumRequest(
    (
        DescribeQuorumRequestTopicData(
            "__cluster_metadata", (DescribeQuorumRequestPartitionData(0),)
        ),
    )
)

_RAISE: Final = UpdateFeaturesRequest(feature_updates=(FeatureUpdateKey("kraft.version", 1),))
_WRONG_LEVELS: Final = (0, 1, 9)
"""Down, what it may be already, and what nobody supports."""


class VoterAdmin(Client):
    def __init__(self, world: World, probes: Probes, *, fewest: int, gap_us: int) -> None:
        super().__init__(world, "voters", ())
        self._probes = probes
        self._fewest = fewest
        self._gap_us = gap_us

    def begin(self) -> None:
        self.after(self.draw(self._gap_us) + SECOND, self._act)

    def stop(self) -> None:
        self.stopped = True

    def _act(self) -> None:
        if not self.stopped:
            self.after(self._gap_us // 2 + self.draw(self._gap_us), self._act)
            self.ask(self.anyone(), ApiKey.DESCRIBE_QUORUM, 2, _DESCRIBE, self._on_described)

    def _on_described(self, reply: DescribeQuorumResponse | None) -> None:
        if reply is None or reply.error_code or self.stopped:
            return
        quorum = reply.topics[0].partitions[0]
        if quorum.error_code:
            return
        voters = [voter.replica_id for voter in quorum.current_voters]
        others = [node_id for node_id in self.world.machines if node_id not in voters]
        if self.draw(ERR_ONE_IN) == 0:
            self._err(NodeId(voters[self.draw(len(voters))]))
        elif others and (len(voters) <= self._fewest or self.draw(2)):
            self._add(others[self.draw(len(others))])
        elif len(voters) > self._fewest:
            self._remove(quorum, self.draw(len(voters)))

    def _err(self, voter: NodeId) -> None:
        """Each is refused: somebody who votes already, who is not there, who has another disk."""
        match self.draw(4):
            case 0:
                self._add(voter)
            case 1:
                listeners = (Listener("CONTROLLER", f"node-{voter}", CONTROLLER_PORT),)
                add = AddRaftVoterRequest(
                    self.world.cluster_id, TIMEOUT_MS, NOBODY, NO_SUCH_DISK, listeners
                )
                self._ask_wrong(ApiKey.ADD_RAFT_VOTER, 1, add)
            case 2:
                remove = RemoveRaftVoterRequest(self.world.cluster_id, voter, NO_SUCH_DISK)
                self._ask_wrong(ApiKey.REMOVE_RAFT_VOTER, 0, remove)
            case _:
                level = _WRONG_LEVELS[self.draw(len(_WRONG_LEVELS))]
                update = FeatureUpdateKey("kraft.version", level, upgrade_type=1 + self.draw(2))
                wrong = UpdateFeaturesRequest(feature_updates=(update,))
                self._ask_wrong(ApiKey.UPDATE_FEATURES, 2, wrong)

    def _ask_wrong(self, key: ApiKey, version: int, request: object) -> None:
        self.ask(self.anyone(), key, version, request, lambda _: None)

    def _add(self, node_id: NodeId) -> None:
        request = AddRaftVoterRequest(
            cluster_id=self.world.cluster_id,
            timeout_ms=TIMEOUT_MS,
            voter_id=node_id,
            voter_directory_id=self.world.machines[node_id].config.directory_id,
            listeners=(Listener("CONTROLLER", f"node-{node_id}", CONTROLLER_PORT),),
            ack_when_committed=self.draw(2) == 0,
        )
        self.ask(self.anyone(), ApiKey.ADD_RAFT_VOTER, 1, request, self._on_added)

    def _on_added(self, reply: AddRaftVoterResponse | None) -> None:
        self._see(VOTER_ADDED, None if reply is None else reply.error_code)

    def _remove(self, quorum: DescribeQuorumResponsePartitionData, number: int) -> None:
        voter = quorum.current_voters[number]
        what = LEADER_REMOVED if voter.replica_id == quorum.leader_id else VOTER_REMOVED
        request = RemoveRaftVoterRequest(
            self.world.cluster_id, voter.replica_id, voter.replica_directory_id
        )

        def on_removed(reply: RemoveRaftVoterResponse | None) -> None:
            self._see(what, None if reply is None else reply.error_code)

        self.ask(self.anyone(), ApiKey.REMOVE_RAFT_VOTER, 0, request, on_removed)

    def _raise_version(self) -> None:
        def on_raised(reply: UpdateFeaturesResponse | None) -> None:
            self._see(VERSION_RAISED, None if reply is None else reply.error_code)

        self.ask(self.anyone(), ApiKey.UPDATE_FEATURES, 2, _RAISE, on_raised)

    def _see(self, what: str, error: int | None) -> None:
        if error == ErrorCode.UNSUPPORTED_VERSION and not self.stopped:
            self._raise_version()
        if error is None:
            self._probes.see(f"{what}: no answer")
        elif error:
            self._probes.see(f"{what}: refused with {ErrorCode(error).name}")
        else:
            self._probes.see(what)
