"""What quorum nodes say to each other, in Kafka's messages: Vote (52), BeginQuorumEpoch (53),
EndQuorumEpoch (54) and the Fetch (1) of the metadata log; FetchSnapshot (59) and the changes of
voters (80, 81, 82) have files of their own.

Each of the machine's questions becomes a request and each request a question again; answers
likewise. One partition, ``__cluster_metadata-0``, stands in every message. Records are bytes that
the node reads for an answer; one that arrives is decoded by ``read``, which the node is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from cotidal.api import (
    add_raft_voter,
    fetch_snapshot,
    remove_raft_voter,
    update_features,
    update_raft_voter,
)
from cotidal.core.quorum.dialogue import (
    AddVoter,
    BeginEpoch,
    ChunkReply,
    EndEpoch,
    EpochReply,
    Fetch,
    FetchChunk,
    FetchedBatch,
    FetchedRecords,
    FetchReply,
    Hint,
    MemberReply,
    Question,
    RemoveVoter,
    Reply,
    UpdateVoter,
    Vote,
    VoteReply,
)
from cotidal.core.quorum.log_view import EpochEnd, SnapshotId
from cotidal.core.quorum.voters import ControlRecord, ReplicaKey
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.batch import NO_BATCHES, Batches
from cotidal.messages.records.quorum import Endpoint
from cotidal.messages.rpc import begin_quorum_epoch as begin
from cotidal.messages.rpc import end_quorum_epoch as end
from cotidal.messages.rpc import fetch, vote
from cotidal.messages.rpc.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from cotidal.messages.rpc.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from cotidal.messages.rpc.update_features import UpdateFeaturesRequest
from cotidal.messages.rpc.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from cotidal.values import (
    NO_EPOCH,
    NO_NODE,
    LeaderEpoch,
    NodeId,
    Offset,
    TopicPartition,
    Uuid,
)

METADATA: Final = TopicPartition("__cluster_metadata", 0)
METADATA_TOPIC_ID: Final = Uuid(bytes(15) + b"\x01")
MAX_BYTES: Final = 8 * 1024 * 1024
LISTENER: Final = "CONTROLLER"
NO_SNAPSHOT: Final = SnapshotId(Offset(-1), NO_EPOCH)

ReadControl = Callable[[Batches], tuple[tuple[Offset, ControlRecord], ...]]
"""The quorum's own records in fetched batches, decoded, with their offsets."""


class Asking(NamedTuple):
    """A question in Kafka's form."""

    api: ApiKey
    version: int
    message: object


def to_request(question: Question, cluster_id: str) -> Asking:
    match question:
        case Vote():
            return Asking(ApiKey.VOTE, 2, _vote_request(question, cluster_id))
        case BeginEpoch():
            return Asking(ApiKey.BEGIN_QUORUM_EPOCH, 1, _begin_request(question, cluster_id))
        case EndEpoch():
            return Asking(ApiKey.END_QUORUM_EPOCH, 1, _end_request(question, cluster_id))
        case Fetch():
            return Asking(ApiKey.FETCH, 18, _fetch_request(question, cluster_id))
        case FetchChunk():
            message = fetch_snapshot.request(question, cluster_id)
            return Asking(ApiKey.FETCH_SNAPSHOT, fetch_snapshot.VERSION, message)
        case UpdateVoter():
            update = update_raft_voter.request(question, cluster_id)
            return Asking(ApiKey.UPDATE_RAFT_VOTER, update_raft_voter.VERSION, update)
        case AddVoter():
            return Asking(ApiKey.ADD_RAFT_VOTER, 1, add_raft_voter.request(question, cluster_id))
        case RemoveVoter():
            removal = remove_raft_voter.request(question, cluster_id)
            return Asking(ApiKey.REMOVE_RAFT_VOTER, 0, removal)
        case _:
            raise NotImplementedError(type(question).__name__)


def refusal_of_stranger(message: Any, cluster_id: str) -> object | None:
    """The answer to a node of another cluster; None for one of ours, or that does not say."""
    if message.cluster_id is None or message.cluster_id == cluster_id:
        return None
    error = ErrorCode.INCONSISTENT_CLUSTER_ID
    match message:
        case vote.VoteRequest():
            return vote.VoteResponse(error_code=error)
        case begin.BeginQuorumEpochRequest():
            return begin.BeginQuorumEpochResponse(error_code=error)
        case end.EndQuorumEpochRequest():
            return end.EndQuorumEpochResponse(error_code=error)
        case fetch.FetchRequest():
            return fetch.FetchResponse(error_code=error)
        case FetchSnapshotRequest():
            return FetchSnapshotResponse(error_code=error)
        case UpdateRaftVoterRequest():
            return UpdateRaftVoterResponse(error_code=error)
        case _:
            raise NotImplementedError(type(message).__name__)


def is_refused_as_stranger(message: Any) -> bool:
    """An answer of another cluster's node to one of ours."""
    return bool(message.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID)


def from_request(message: object) -> Question | Refusal:
    """The question in a request, if it asks about the one partition that there is."""
    if isinstance(message, UpdateRaftVoterRequest):
        return update_raft_voter.question(message)
    if not _names_metadata(message):
        return Refusal(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"the quorum has one partition, {METADATA}"
        )
    match message:
        case vote.VoteRequest():
            asked = message.topics[0].partitions[0]
            return Vote(
                candidate=ReplicaKey(NodeId(asked.replica_id), asked.replica_directory_id),
                voter=ReplicaKey(NodeId(message.voter_id), asked.voter_directory_id),
                epoch=LeaderEpoch(asked.replica_epoch),
                last_epoch=LeaderEpoch(asked.last_offset_epoch),
                end_offset=Offset(asked.last_offset),
                pre_vote=asked.pre_vote,
            )
        case begin.BeginQuorumEpochRequest():
            told = message.topics[0].partitions[0]
            return BeginEpoch(
                leader_id=NodeId(told.leader_id),
                voter=ReplicaKey(NodeId(message.voter_id), told.voter_directory_id),
                epoch=LeaderEpoch(told.leader_epoch),
                endpoints=tuple(Endpoint(*point) for point in message.leader_endpoints),
            )
        case end.EndQuorumEpochRequest():
            ended = message.topics[0].partitions[0]
            return EndEpoch(
                leader_id=NodeId(ended.leader_id),
                epoch=LeaderEpoch(ended.leader_epoch),
                successors=tuple(
                    ReplicaKey(NodeId(info.candidate_id), info.candidate_directory_id)
                    for info in ended.preferred_candidates
                ),
            )
        case fetch.FetchRequest():
            wanted = message.topics[0].partitions[0]
            return Fetch(
                replica=ReplicaKey(
                    NodeId(message.replica_state.replica_id), wanted.replica_directory_id
                ),
                epoch=LeaderEpoch(wanted.current_leader_epoch),
                offset=Offset(wanted.fetch_offset),
                last_epoch=LeaderEpoch(wanted.last_fetched_epoch),
                high_watermark=Offset(wanted.high_watermark),
                max_wait_ms=message.max_wait_ms,
            )
        case FetchSnapshotRequest():
            return fetch_snapshot.question(message)
        case _:
            raise NotImplementedError(type(message).__name__)


def _names_metadata(message: Any) -> bool:
    topics = message.topics if hasattr(message, "topics") else message.responses
    return len(topics) == 1 and len(topics[0].partitions) == 1


def is_metadata_fetch(request: fetch.FetchRequest) -> bool:
    return any(topic.topic_id == METADATA_TOPIC_ID for topic in request.topics)


def to_response(request: object, reply: Reply, data: bytes | memoryview = b"") -> object:
    """``data``: what was read for a FetchReply or a ChunkReply that names a range."""
    match reply:
        case VoteReply(error, hint, granted):
            partition = vote.VoteResponsePartitionData(
                0, error, hint.leader_id, hint.epoch, granted
            )
            return vote.VoteResponse(
                topics=(vote.VoteResponseTopicData(METADATA.topic, (partition,)),),
                node_endpoints=tuple(
                    vote.NodeEndpoint(hint.leader_id, point.host, point.port)
                    for point in hint.endpoints[:1]
                ),
            )
        case EpochReply(error, hint) if isinstance(request, begin.BeginQuorumEpochRequest):
            begun = begin.BeginQuorumEpochResponsePartitionData(
                0, error, hint.leader_id, hint.epoch
            )
            return begin.BeginQuorumEpochResponse(
                topics=(begin.BeginQuorumEpochResponseTopicData(METADATA.topic, (begun,)),),
                node_endpoints=tuple(
                    begin.NodeEndpoint(hint.leader_id, point.host, point.port)
                    for point in hint.endpoints[:1]
                ),
            )
        case EpochReply(error, hint):
            ended = end.EndQuorumEpochResponsePartitionData(0, error, hint.leader_id, hint.epoch)
            return end.EndQuorumEpochResponse(
                topics=(end.EndQuorumEpochResponseTopicData(METADATA.topic, (ended,)),),
                node_endpoints=tuple(
                    end.NodeEndpoint(hint.leader_id, point.host, point.port)
                    for point in hint.endpoints[:1]
                ),
            )
        case FetchReply():
            return _fetch_response(reply, data)
        case ChunkReply():
            return fetch_snapshot.response(reply, data)
        case MemberReply() if isinstance(request, AddRaftVoterRequest):
            return add_raft_voter.response(reply)
        case MemberReply() if isinstance(request, RemoveRaftVoterRequest):
            return remove_raft_voter.response(reply)
        case MemberReply() if isinstance(request, UpdateFeaturesRequest):
            return update_features.raised(request, reply)
        case MemberReply():
            return update_raft_voter.response(reply)
        case _:
            raise NotImplementedError(type(reply).__name__)


def from_response(message: Any, read: ReadControl) -> Reply | Refusal:
    """The reply in a response; a Refusal for one that is about anything else, or damaged."""
    if isinstance(message, UpdateRaftVoterResponse):
        leader = message.current_leader
        point = Endpoint(LISTENER, leader.host, leader.port)
        hint = Hint(NodeId(leader.leader_id), LeaderEpoch(leader.leader_epoch), (point,))
        if leader.leader_id < 0:
            hint = _hint(leader.leader_id, leader.leader_epoch, ())
        return update_raft_voter.reply(_error(message.error_code), hint)
    if isinstance(message, AddRaftVoterResponse | RemoveRaftVoterResponse):
        return MemberReply(_error(message.error_code), message.error_message or "", Hint())
    if not message.error_code and not _names_metadata(message):
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    match message:
        case vote.VoteResponse():
            if message.error_code:
                return VoteReply(_error(message.error_code), Hint(), False)
            told = message.topics[0].partitions[0]
            return VoteReply(
                _error(told.error_code),
                _hint(told.leader_id, told.leader_epoch, message.node_endpoints),
                told.vote_granted,
            )
        case begin.BeginQuorumEpochResponse() | end.EndQuorumEpochResponse():
            if message.error_code:
                return EpochReply(_error(message.error_code), Hint())
            said = message.topics[0].partitions[0]
            return EpochReply(
                _error(said.error_code),
                _hint(said.leader_id, said.leader_epoch, message.node_endpoints),
            )
        case fetch.FetchResponse():
            return _fetch_reply(message, read)
        case FetchSnapshotResponse():
            return _chunk_reply(message)
        case _:
            raise NotImplementedError(type(message).__name__)


def _vote_request(question: Vote, cluster_id: str) -> vote.VoteRequest:
    partition = vote.VoteRequestPartitionData(
        partition_index=0,
        replica_epoch=question.epoch,
        replica_id=question.candidate.node_id,
        replica_directory_id=question.candidate.directory_id,
        voter_directory_id=question.voter.directory_id,
        last_offset_epoch=question.last_epoch,
        last_offset=question.end_offset,
        pre_vote=question.pre_vote,
    )
    topic = vote.VoteRequestTopicData(METADATA.topic, (partition,))
    return vote.VoteRequest(cluster_id, question.voter.node_id, (topic,))


def _begin_request(question: BeginEpoch, cluster_id: str) -> begin.BeginQuorumEpochRequest:
    partition = begin.BeginQuorumEpochRequestPartitionData(
        0, question.voter.directory_id, question.leader_id, question.epoch
    )
    topic = begin.BeginQuorumEpochRequestTopicData(METADATA.topic, (partition,))
    points = tuple(begin.LeaderEndpoint(*point) for point in question.endpoints)
    return begin.BeginQuorumEpochRequest(cluster_id, question.voter.node_id, (topic,), points)


def _end_request(question: EndEpoch, cluster_id: str) -> end.EndQuorumEpochRequest:
    partition = end.EndQuorumEpochRequestPartitionData(
        0,
        question.leader_id,
        question.epoch,
        preferred_candidates=tuple(end.ReplicaInfo(*key) for key in question.successors),
    )
    topic = end.EndQuorumEpochRequestTopicData(METADATA.topic, (partition,))
    return end.EndQuorumEpochRequest(cluster_id, (topic,))


def _fetch_request(question: Fetch, cluster_id: str) -> fetch.FetchRequest:
    partition = fetch.FetchPartition(
        partition=0,
        current_leader_epoch=question.epoch,
        fetch_offset=question.offset,
        last_fetched_epoch=question.last_epoch,
        partition_max_bytes=MAX_BYTES,
        replica_directory_id=question.replica.directory_id,
        high_watermark=question.high_watermark,
    )
    return fetch.FetchRequest(
        cluster_id=cluster_id,
        replica_state=fetch.ReplicaState(question.replica.node_id, -1),
        max_wait_ms=question.max_wait_ms,
        min_bytes=0,
        max_bytes=MAX_BYTES,
        topics=(fetch.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=(partition,)),),
    )


def _fetch_response(reply: FetchReply, data: bytes | memoryview) -> fetch.FetchResponse:
    diverging = reply.diverging
    snapshot = reply.snapshot
    partition = fetch.PartitionData(
        partition_index=0,
        error_code=reply.error,
        high_watermark=reply.high_watermark,
        last_stable_offset=reply.high_watermark,
        log_start_offset=reply.log_start,
        diverging_epoch=(
            fetch.EpochEndOffset() if diverging is None else fetch.EpochEndOffset(*diverging)
        ),
        current_leader=fetch.LeaderIdAndEpoch(reply.hint.leader_id, reply.hint.epoch),
        snapshot_id=fetch.SnapshotId() if snapshot is None else fetch.SnapshotId(*snapshot),
        records=Batches((), data) if data else NO_BATCHES,
    )
    topic = fetch.FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=(partition,))
    return fetch.FetchResponse(
        responses=(topic,),
        node_endpoints=tuple(
            fetch.NodeEndpoint(reply.hint.leader_id, point.host, point.port)
            for point in reply.hint.endpoints[:1]
        ),
    )


def _fetch_reply(message: fetch.FetchResponse, read: ReadControl) -> FetchReply:
    if message.error_code:
        return FetchReply(_error(message.error_code), Hint())
    told = message.responses[0].partitions[0]
    batches = told.records or NO_BATCHES
    records = None
    if batches.headers:
        control = read(batches)
        records = FetchedRecords(
            tuple(
                FetchedBatch(
                    header.base_offset,
                    header.next_offset,
                    header.leader_epoch,
                    header.size_bytes,
                    tuple(
                        (offset, record)
                        for offset, record in control
                        if header.base_offset <= offset < header.next_offset
                    ),
                )
                for header in batches.headers
            ),
            batches,
        )
    diverging, snapshot, leader = told.diverging_epoch, told.snapshot_id, told.current_leader
    return FetchReply(
        _error(told.error_code),
        _hint(leader.leader_id, leader.leader_epoch, message.node_endpoints),
        Offset(told.high_watermark),
        Offset(told.log_start_offset),
        (
            EpochEnd(LeaderEpoch(diverging.epoch), Offset(diverging.end_offset))
            if diverging.end_offset >= 0
            else None
        ),
        (
            SnapshotId(Offset(snapshot.end_offset), LeaderEpoch(snapshot.epoch))
            if snapshot.end_offset >= 0
            else None
        ),
        records,
    )


def _chunk_reply(message: FetchSnapshotResponse) -> ChunkReply:
    if message.error_code:
        return ChunkReply(_error(message.error_code), Hint(), NO_SNAPSHOT)
    told = message.topics[0].partitions[0]
    leader = told.current_leader
    hint = _hint(leader.leader_id, leader.leader_epoch, message.node_endpoints)
    return fetch_snapshot.reply(message, _error(told.error_code), hint)


def _error(code: int) -> ErrorCode:
    """A code that we do not know is an error like any other."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


class _Located(Protocol):
    """The NodeEndpoint of each message is a class of its own."""

    @property
    def node_id(self) -> int: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


def _hint(leader_id: int, epoch: int, endpoints: Sequence[_Located]) -> Hint:
    points = tuple(
        Endpoint(LISTENER, point.host, point.port)
        for point in endpoints
        if point.node_id == leader_id
    )
    if leader_id < 0:
        return Hint(NO_NODE, LeaderEpoch(epoch) if epoch >= 0 else NO_EPOCH)
    return Hint(NodeId(leader_id), LeaderEpoch(epoch), points)
