"""Every error code of the protocol, and the three fates of an error.

Refusal            a value; becomes an error code on the wire, with a sentence that says why
PeerError          raised at the edge: bytes or claims that break the protocol;
  MalformedFrame     that connection is closed and counted, nothing else happens
  UnsupportedRequest
AssertionError     a Fault: our own broken promise, named in invariants.py
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple


class PeerError(Exception):
    """A peer broke the protocol. The message is one sentence and names what was wrong."""


class MalformedFrame(PeerError):
    """Bytes that cannot be read as what they claim to be."""


class UnsupportedRequest(PeerError):
    """An API key or version that this listener does not serve."""


class ErrorCode(IntEnum):
    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133


class RecordFault(NamedTuple):
    """A record because of which its batch is refused."""

    number: int
    """In the batch, from 0."""
    sentence: str


class Refusal(NamedTuple):
    """Why a request was not carried out. ``message`` None: the table's text is enough."""

    error: ErrorCode
    message: str | None = None
    records: tuple[RecordFault, ...] = ()

    @property
    def text(self) -> str:
        return self.message or MESSAGES[self.error]


MESSAGES: Final[dict[ErrorCode, str]] = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "The server met an error that it did not expect",
    ErrorCode.NONE: "No error",
    ErrorCode.OFFSET_OUT_OF_RANGE: "The offset is outside the range that this replica holds",
    ErrorCode.CORRUPT_MESSAGE: "The record batch fails its checksum, is cut short or is otherwise malformed",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic or partition",
    ErrorCode.INVALID_FETCH_SIZE: "The requested fetch size is invalid",
    ErrorCode.LEADER_NOT_AVAILABLE: "There is no leader for this partition: an election is under way",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "This broker is not the leader, or not a replica, of this partition",
    ErrorCode.REQUEST_TIMED_OUT: "The request timed out",
    ErrorCode.BROKER_NOT_AVAILABLE: "The broker is not available",
    ErrorCode.REPLICA_NOT_AVAILABLE: "The replica is not available on this broker",
    ErrorCode.MESSAGE_TOO_LARGE: "The batch is larger than this topic accepts",
    ErrorCode.STALE_CONTROLLER_EPOCH: "The controller has moved to another broker",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "The metadata field of the offset commit is too large",
    ErrorCode.NETWORK_EXCEPTION: "The server disconnected before it answered",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator is still loading its state",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available",
    ErrorCode.NOT_COORDINATOR: "This broker is not the coordinator that was asked for",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "The topic name is not valid",
    ErrorCode.RECORD_LIST_TOO_LARGE: "The request holds a record list larger than a segment",
    ErrorCode.NOT_ENOUGH_REPLICAS: "Fewer replicas are in sync than min.insync.replicas asks for",
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "The records were written, but to fewer in-sync replicas than required",
    ErrorCode.INVALID_REQUIRED_ACKS: "acks must be -1, 0 or 1",
    ErrorCode.ILLEGAL_GENERATION: "The group's generation is not the one given",
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: "The member's protocols do not fit those of the group",
    ErrorCode.INVALID_GROUP_ID: "The group id is not valid",
    ErrorCode.UNKNOWN_MEMBER_ID: "The group does not know this member",
    ErrorCode.INVALID_SESSION_TIMEOUT: "The session timeout is outside what the broker accepts",
    ErrorCode.REBALANCE_IN_PROGRESS: "The group is rebalancing: join again",
    ErrorCode.INVALID_COMMIT_OFFSET_SIZE: "The offset commit's data size is not valid",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Not authorized for this topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Not authorized for this group",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Not authorized for the cluster",
    ErrorCode.INVALID_TIMESTAMP: "The timestamp of a record is out of the accepted range",
    ErrorCode.UNSUPPORTED_SASL_MECHANISM: "The SASL mechanism is not enabled here",
    ErrorCode.ILLEGAL_SASL_STATE: "The request is not valid in the connection's SASL state",
    ErrorCode.UNSUPPORTED_VERSION: "This version of the API is not supported",
    ErrorCode.TOPIC_ALREADY_EXISTS: "A topic of this name exists already",
    ErrorCode.INVALID_PARTITIONS: "The number of partitions is not valid",
    ErrorCode.INVALID_REPLICATION_FACTOR: "The replication factor is below 1 or above the number of available brokers",
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: "The replica assignment is not valid",
    ErrorCode.INVALID_CONFIG: "The configuration is not valid",
    ErrorCode.NOT_CONTROLLER: "This node is not the active controller",
    ErrorCode.INVALID_REQUEST: "The request is malformed or contradicts itself",
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: "The record format on the broker does not support this request",
    ErrorCode.POLICY_VIOLATION: "A policy of the cluster refuses the request",
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "The producer's sequence number does not follow its last one",
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: "The producer's sequence number was seen before and is no longer remembered",
    ErrorCode.INVALID_PRODUCER_EPOCH: "The producer's epoch is older than the one known",
    ErrorCode.INVALID_TXN_STATE: "The producer attempted a transactional operation in a state that does not allow it",
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "The producer id does not belong to its transactional id",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "The transaction timeout is above transaction.max.timeout.ms",
    ErrorCode.CONCURRENT_TRANSACTIONS: "The producer's previous transaction is still being completed",
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: "The transaction coordinator has been replaced by a newer one",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Not authorized for this transactional id",
    ErrorCode.SECURITY_DISABLED: "Security features are disabled",
    ErrorCode.OPERATION_NOT_ATTEMPTED: "The operation was not attempted: another one in the batch failed",
    ErrorCode.KAFKA_STORAGE_ERROR: "The log directory of this replica has failed",
    ErrorCode.LOG_DIR_NOT_FOUND: "The log directory is not one of this broker's",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "SASL authentication failed",
    ErrorCode.UNKNOWN_PRODUCER_ID: "The producer id is not known: its records have been deleted",
    ErrorCode.REASSIGNMENT_IN_PROGRESS: "A reassignment of the partition is in progress",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "Delegation tokens are not enabled",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "The delegation token is not known",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "The principal is not the token's owner or renewer",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "Delegation token requests are not allowed on this connection",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "Not authorized for this delegation token",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "The delegation token has expired",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "The principal type is not supported",
    ErrorCode.NON_EMPTY_GROUP: "The group is not empty",
    ErrorCode.GROUP_ID_NOT_FOUND: "The group does not exist",
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND: "The fetch session is not known",
    ErrorCode.INVALID_FETCH_SESSION_EPOCH: "The fetch session's epoch is not the expected one",
    ErrorCode.LISTENER_NOT_FOUND: "The leader has no listener of the name the request came in on",
    ErrorCode.TOPIC_DELETION_DISABLED: "Topic deletion is disabled",
    ErrorCode.FENCED_LEADER_EPOCH: "The leader epoch in the request is older than the broker's",
    ErrorCode.UNKNOWN_LEADER_EPOCH: "The leader epoch in the request is newer than the broker's",
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: "The compression type is not supported by this version of the API",
    ErrorCode.STALE_BROKER_EPOCH: "The broker epoch is not the registered one",
    ErrorCode.OFFSET_NOT_AVAILABLE: "The leader's high watermark has not caught up after its election",
    ErrorCode.MEMBER_ID_REQUIRED: "The member must join again with the member id it was given",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred leader is not available",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "The group has reached its maximum size",
    ErrorCode.FENCED_INSTANCE_ID: "Another member with this group.instance.id has joined",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "No eligible leader is available",
    ErrorCode.ELECTION_NOT_NEEDED: "The partition does not need an election",
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS: "No reassignment is in progress",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "The group subscribes to the topic: its offsets cannot be deleted",
    ErrorCode.INVALID_RECORD: "A record was refused by the broker",
    ErrorCode.UNSTABLE_OFFSET_COMMIT: "Offsets of an open transaction are pending for the partition",
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: "The throttling quota has been exceeded",
    ErrorCode.PRODUCER_FENCED: "A newer producer with the same transactional id fences this one",
    ErrorCode.RESOURCE_NOT_FOUND: "The resource does not exist",
    ErrorCode.DUPLICATE_RESOURCE: "The resource is named twice in the request",
    ErrorCode.UNACCEPTABLE_CREDENTIAL: "The credential does not meet the criteria",
    ErrorCode.INCONSISTENT_VOTER_SET: "The voters given are not those of the quorum",
    ErrorCode.INVALID_UPDATE_VERSION: "The partition epoch of the request is older than the controller's",
    ErrorCode.FEATURE_UPDATE_FAILED: "The feature update failed",
    ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE: "The forwarded principal could not be read",
    ErrorCode.SNAPSHOT_NOT_FOUND: "The snapshot does not exist",
    ErrorCode.POSITION_OUT_OF_RANGE: "The position is outside the snapshot",
    ErrorCode.UNKNOWN_TOPIC_ID: "This server does not host a topic with this id",
    ErrorCode.DUPLICATE_BROKER_REGISTRATION: "A broker with this id is registered and alive",
    ErrorCode.BROKER_ID_NOT_REGISTERED: "No broker with this id is registered",
    ErrorCode.INCONSISTENT_TOPIC_ID: "The topic id in the log and in the request differ",
    ErrorCode.INCONSISTENT_CLUSTER_ID: "The cluster id is not this cluster's",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "The transactional id is not known",
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR: "The fetch session mixes topics with and without ids",
    ErrorCode.INELIGIBLE_REPLICA: "A replica of the new ISR may not join it",
    ErrorCode.NEW_LEADER_ELECTED: "The change made the controller elect a new leader",
    ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE: "The offset has moved to tiered storage",
    ErrorCode.FENCED_MEMBER_EPOCH: "The member's epoch was fenced by the coordinator: join again",
    ErrorCode.UNRELEASED_INSTANCE_ID: "The instance id is still used by another member",
    ErrorCode.UNSUPPORTED_ASSIGNOR: "The assignor is not supported by the group",
    ErrorCode.STALE_MEMBER_EPOCH: "The member's epoch is stale: retry after the next heartbeat",
    ErrorCode.MISMATCHED_ENDPOINT_TYPE: "The request went to an endpoint of the wrong type",
    ErrorCode.UNSUPPORTED_ENDPOINT_TYPE: "The endpoint type is not supported",
    ErrorCode.UNKNOWN_CONTROLLER_ID: "The controller id is not known",
    ErrorCode.UNKNOWN_SUBSCRIPTION_ID: "The telemetry subscription is not known",
    ErrorCode.TELEMETRY_TOO_LARGE: "The telemetry is larger than the broker accepts",
    ErrorCode.INVALID_REGISTRATION: "The registration is not valid",
    ErrorCode.TRANSACTION_ABORTABLE: "The transaction met an error and must be aborted",
    ErrorCode.INVALID_RECORD_STATE: "The record's state does not allow this acknowledgement",
    ErrorCode.SHARE_SESSION_NOT_FOUND: "The share session is not known",
    ErrorCode.INVALID_SHARE_SESSION_EPOCH: "The share session's epoch is not the expected one",
    ErrorCode.FENCED_STATE_EPOCH: "The share coordinator fenced the state epoch",
    ErrorCode.INVALID_VOTER_KEY: "The voter key is not that of the receiving replica",
    ErrorCode.DUPLICATE_VOTER: "The voter is already in the set of voters",
    ErrorCode.VOTER_NOT_FOUND: "The voter is not in the set of voters",
    ErrorCode.INVALID_REGULAR_EXPRESSION: "The regular expression is not valid",
    ErrorCode.REBOOTSTRAP_REQUIRED: "The client's metadata is stale: bootstrap again",
    ErrorCode.STREAMS_INVALID_TOPOLOGY: "The topology is not valid",
    ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH: "The topology epoch is not valid",
    ErrorCode.STREAMS_TOPOLOGY_FENCED: "The topology epoch is outdated",
    ErrorCode.SHARE_SESSION_LIMIT_REACHED: "The limit of share sessions has been reached",
}

RETRIABLE: Final = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    }
)
