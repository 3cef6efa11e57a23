"""Every bound of the system, with its reason. Nothing grows without a name in this file.

Bounds that a user may move are settings (settings.py) whose defaults stand here.
"""

from __future__ import annotations

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * 1024

# node

CONNECTION_PIPELINE_MAX: Final = 512
"""Requests of one connection that may wait for an answer. Clients keep 5 (Java) to 1,000,000
(librdkafka's max.in.flight) in flight; past this bound we stop reading from the socket."""

FETCH_SESSIONS_MAX: Final = 1000
"""Kafka's max.incremental.fetch.session.cache.slots."""

FETCH_SESSION_IDLE_MS: Final = 120_000
"""A session not used for this long may be evicted by a new one (KIP-227)."""

FETCH_WAIT_MAX_MS: Final = 300_000
"""A parked fetch, produce or deletion is answered after this long whatever it asked for."""

COORDINATOR_LOAD_BYTES: Final = 64 * KIB
"""Read and replayed in one turn while a coordinator loads its log: some 560 commits, which take
5 ms here. offsets.load.buffer.size may ask for less."""

STRANGERS_TOLD_MAX: Final = 8
"""Nodes of other clusters of which a controller's journal tells: somebody may make up a new cluster
with every request."""

RECORD_FAULTS_MAX: Final = 1_000
"""Records that the answer to a Produce names as those at fault, with a sentence each: 100 KB. A
megabyte of records without keys has some 150,000."""

COORDINATOR_HELD_MAX: Final = 1_000
"""Questions that wait for one coordinator to load its log; the rest is refused at once."""

TRANSACTION_WAITING_MAX: Final = 16
"""Requests of one producer that wait for the end of its last transaction; the rest is told to come
again at once. A client has one or two of them under way: partitions, and offsets."""

CONSUMER_GROUP_MEMBERS_MAX: Final = 10_000
"""Members of one group of the consumer protocol, if group.consumer.max.size does not say less. Each
change makes a target for all of them: about 20 ms with so many."""

CONSUMER_RECORDS_PER_WRITE: Final = 1_000
"""Records of one batch that a consumer group's change is cut into: below the largest batch unless a
member has thousands of partitions, and one batch for all groups of usual size."""

PATTERN_LENGTH_MAX: Final = 1_000
"""Characters of an expression that a consumer subscribes with."""

PATTERN_DEPTH_MAX: Final = 50
"""Groups inside groups of an expression: far more than a person can read, and far below what
Python can go down."""

PATTERN_REPEAT_MAX: Final = 1_000
"""Of ``x{n}``: RE2's bound."""

PATTERN_PLACES_MAX: Final = 500
"""Places of an expression: what one character can cost while nothing about it is remembered, about
a tenth of a millisecond. ``.{249}``, as long as a name can be, has 250."""

PATTERN_MOVES_MAX: Final = 5_000
"""Moves of one expression that are remembered, about; then it begins anew."""

PATTERNS_KEPT_MAX: Final = 1_000
"""Compiled expressions of one coordinator; then it begins anew."""

PATTERN_MATCH_GAP_MS: Final = 1_000
"""Between two times that a group's expressions are held against all topics. Kafka waits ten times
as long; a new topic should not have to."""

GROUPS_MAX: Final = 20_000
"""Groups with members of one coordinator. Joining makes a group, so that a client that thinks of a
new name each time would fill the memory; a cluster has 50 coordinators of groups, and a million
groups is more than anybody has."""

GROUP_PENDING_MAX: Final = 10_000
"""Members of one group that were given an id and have not joined with it (KIP-394): each is kept
for its session, up to half an hour. group.max.size counts only those that have joined."""

EVENTS_QUEUED_MAX: Final = 10_000
"""Happenings that wait to be written to __cotidal_events: about 4 MB. The death of a broker is two
for each of its partitions; what does not fit is dropped, and counted."""

EVENTS_PER_WRITE_MAX: Final = 100
"""Of one batch: some 3 ms of the event loop to encode on a busy machine, so that no client waits
for longer behind it. The rest of the queue follows as soon as it is written."""

EVENT_WRITE_ATTEMPTS_MAX: Final = 8
"""A batch that nobody takes is dropped after these: about ten seconds with the pauses between."""

ACK_SPANS: Final = 18
"""Powers of two in which acknowledgement times are counted, in milliseconds: the last but one ends
at 65 s, longer than a producer waits unless told to."""

HEALTH_PARTITIONS_MAX: Final = 100
"""Partitions in one health sample, about 300 bytes each before compression, so that a broker writes
30 KB a second at most. Those left out come first in the next one."""

QUOTA_METERS_MAX: Final = 10_000
"""Clients whose use is counted for a quota, some 400 bytes each. Past it the idle ones are
forgotten, then the oldest: a client that changes its id with each request gets no more memory."""

THROTTLE_MS_MAX: Final = 300_000
"""A client that has taken too much is not listened to for longer than this at once. Nothing is read
from it meanwhile, so that its end would not be noticed either."""

# broker

FRAME_BYTES_MAX: Final = 100 * MIB
"""Kafka's socket.request.max.bytes."""

CONNECTIONS_MAX: Final = 5_000
"""Open client connections of one node: each costs about 10 KB here and a file descriptor."""

OUTPUT_HIGH_WATER_BYTES: Final = 4 * MIB
"""Unsent reply bytes of a connection past which its requests are no longer read."""

CONNECTION_IDLE_MS: Final = 600_000
"""Kafka's connections.max.idle.ms."""

PEER_CALLS_MAX: Final = 1_024
"""Calls to another node that wait for an answer on one connection; a node asks a handful, and
forwards what clients ask of the controller. Past it a call fails at once."""

PEER_UNSENT_BYTES_MAX: Final = 64 * MIB
"""Of calls that the other node does not take. Forwarded requests are the only large ones."""

# log

LOG_OPEN_FILES: Final = 400
"""Descriptors that log files may hold. The usual soft limit is 1,024; sockets need the rest."""

LEFT_SHARE: Final = 4
"""One in so many of the open files may be kept open by nothing but answers that wait in them to be
sent. Past it answers are read into memory, which has a bound of its own (UNSENT_BYTES_MAX)."""

LOG_RECENT_BATCHES: Final = 1024
"""Batches at a log's tail whose positions are kept in memory, so that a reader who keeps up needs
no index: 16 bytes each, at most twice this many, 32 KB a partition."""

LOG_TAIL_BYTES: Final = 4096
"""An append up to this large stays in memory until the next one: each follower that has all before
it asks for it at once, and is answered without a system call. So much memory a partition."""

LOG_RESUME_POINTS: Final = 64
"""Readers behind the tail whose next position is remembered, so that each read on is one pread."""

RESERVE_FROM_BYTES: Final = 8 * MIB
"""A segment that has become so large has blocks reserved for what comes next: writing 600 KB costs
60 us of CPU in place of 100 on ext4. Most segments never do, and reserve nothing."""

RESERVE_SHARE: Final = 8
RESERVE_BYTES_MAX: Final = 16 * MIB
"""Reserved at a time: an eighth of what the segment holds already, and no more than this. So much
of the disk, for each log that grows, is taken and not used yet."""

LOG_SCAN_BYTES: Final = 1024 * 1024
"""Read at once when a segment is walked (recovery, verification)."""

LOG_HEADER_SCAN_BYTES: Final = 16 * 1024
"""Read at once when only headers are looked at: of large batches the rest is stepped over."""

PRODUCER_WINDOW_ENTRIES: Final = 50
"""Of the offset index, gone back from a producer snapshot when a log is opened: 50 batches of 4 KB
and more (ten producers with five in flight), or 200 KB of small ones, which take some 5 ms."""

LOG_INDEX_ENTRIES_BUFFERED: Final = 64
"""Index entries kept before they are written: one write for each 256 KB of log. A crash loses
them, and recovery makes them anew."""

JOURNAL_SENTENCES_PER_MINUTE: Final = 5
"""Of one kind that a peer can provoke: enough to see what happens, too few to fill a disk."""

HELD_BYTES_MAX: Final = 256 * MIB
"""Bytes of frames that have begun to arrive and of requests that are not yet written, over all
connections. Past it only the connection whose frame has got furthest is read."""

PARTIAL_FRAME_STALL_MS: Final = 30_000
"""A connection that stops in the middle of a frame for this long is closed: it holds memory."""

UNSENT_BYTES_MAX: Final = 256 * MIB
"""Answers to fetches that clients have not taken yet, over all connections. Past it an answer holds
one batch of one partition, which is the least that Kafka allows."""

NODE_RESIDENT_BYTES_MAX: Final = 1024 * MIB
"""Memory of a node whatever its clients do, while its topics are few: HELD_BYTES_MAX and
UNSENT_BYTES_MAX, each once more in copies on their way, 5,000 connections, and Python itself. A
test holds a node under attack against it."""

LISTEN_BACKLOG: Final = 1_024
"""Connections the kernel keeps for us between two turns of the loop."""

METRICS_REQUEST_BYTES_MAX: Final = 8 * KIB
"""Of a scrape's request line and headers."""

METRICS_CONNECTIONS_MAX: Final = 32
"""Scrapers at once: one Prometheus, a colleague's curl, a probe, and room."""

METRICS_PARTITIONS_MAX: Final = 1_000
"""Partitions that a scrape lists one by one, those that are not well first. With a thousand, a
third of them led, it is 5,700 lines, 320 KB and 12 ms of the event loop. Totals count all."""

MALLOC_MMAP_THRESHOLD_BYTES: Final = 32 * MIB
"""glibc's largest. Below it a freed request stays on the heap for the next one."""

MALLOC_TRIM_THRESHOLD_BYTES: Final = 64 * MIB
"""Free bytes at the top of the heap that we keep."""

FAULT_EVENTS_TOLD: Final = 32
"""Events before a fault that are told with it."""

# client

RESPONSE_BYTES_MAX: Final = 256 * MIB
"""The largest answer a client of ours accepts: fetches ask for at most 50 MiB and a broker may
exceed that by one batch, whose own bound is FRAME_BYTES_MAX."""

# wire

MESSAGE_ELEMENTS_MAX: Final = 1_000_000
"""Topics and partitions in one Produce, Fetch, ListOffsets or Metadata message. An element takes
three bytes of a frame and a hundred of memory, so a frame's bound alone is none."""

REQUEST_BYTES_MAX_WITHOUT_RECORDS: Final = 16 * MIB
"""Any request but Produce, for the same reason. 200,000 partitions take 10 MB at most."""

DECOMPRESSED_BATCH_BYTES_MAX: Final = 128 * 1024 * 1024
"""A compressed batch may claim any size: a hundredfold of Kafka's default message.max.bytes is more
than text compresses to, and still fits the memory of one broker."""

# cluster

PARTITIONS_PER_DECISION_MAX: Final = 10_000
"""Partitions that one request may create: they are one atomic batch of the metadata log. Kafka's
number too."""

TOPIC_NAME_LENGTH_MAX: Final = 249
"""Kafka's: a directory is named after topic and partition, and file systems allow 255 bytes."""

DESCRIPTORS_RESERVED: Final = 32
"""File descriptors that are neither logs nor client connections: listeners, the loop's own,
checkpoints being written, a module being imported, the connection that is being refused."""

OPEN_FILES_MAX: Final = 12_000
"""Log files a node keeps open where the system allows: 4,000 partitions without reopening any."""

LARGE_APPEND_BYTES: Final = 64 * KIB
"""An append from here on is left to a thread while the disk is behind; see broker/disk.py."""

READ_STALL_MS: Final = 4
"""A read on the event loop that takes this long was not in the page cache."""

APPEND_STALL_MS: Final = 4
"""An append on the event loop that takes this long shows that the disk is behind."""

MARKERS_PER_WRITE_MAX: Final = 1_000
"""Partitions in one WriteTxnMarkers: a transaction of more is ended in several."""

# spark

SPARK_FETCH_BYTES: Final = 8 * MIB
"""Asked for in one fetch; two of them are in the memory of a task at a time. Larger ones read no
faster here."""

SPARK_BATCH_ROWS: Final = 50_000
"""Rows in one Arrow batch: handing them to Spark costs half of what batches of 10,000 rows do."""

SPARK_BATCH_BYTES: Final = 16 * MIB
"""Of keys and values in one Arrow batch, decompressed; one batch of records more, because these
are not divided."""

SPARK_WRITE_BYTES: Final = 512 * KIB
"""Of one batch that is written, before compression: half of Kafka's default max.message.bytes. A
larger row still travels, alone."""

SPARK_COMMITS_AT_ONCE_MAX: Final = 8
"""Transactions of one batch that the driver commits side by side."""

SPARK_TASK_RECORDS_MIN: Final = 1_000
"""Offsets of one task, where there are as many: what a task costs Spark before it reads anything
is as much as tens of thousands of small records; but thousands of large ones want several."""

SPARK_LATEST_AGE_MAX_S: Final = 0.05
"""How old the ends of partitions may be that a stream is told: Spark asks some 85 times a second
while there is nothing to do, for each of which brokers would be asked."""

# moving a log to another directory

MOVE_LAST_BYTES: Final = 4 * MIB
"""What may be missing of a copy when its log is closed for the change: some 10 ms of nobody being
served."""

MOVE_ROUNDS_MAX: Final = 20
"""Of copying what came in the meantime. A log that is written faster than it is copied would never
move; after these it waits for the rest."""

# console

PAGE_COMMAND_BYTES_MAX: Final = 256 * KIB
"""One message of the page: a run that is shared carries all its commands, some 60 bytes each."""

PAGE_JOURNAL_MAX: Final = 2_000
"""Commands of one simulated run. Each is done again whenever the run goes back in time."""

PAGE_TOLD_MAX: Final = 50_000
"""Sentences of one simulated run, 200 bytes each: some hours of watching. The run then stands."""

PAGE_STEPS_PER_TURN_MAX: Final = 400
"""Events of simulated nodes between two pictures: some 40 ms here. Time then passes more slowly.
With many partitions each event is looked at for longer, and there are fewer (see below)."""

PAGE_STEPS_PARTITIONS: Final = 25
"""Each so many partitions make an event of a simulated node cost as much again as it did."""

PAGE_PARTITIONS_WHOLE: Final = 60
"""Partitions that a page is shown whole, some 500 bytes each, and in one list to choose from. Of
more it has one whole and the others as rows of some 50 bytes."""

PAGE_PARTITIONS_LISTED: Final = 5_000
"""Rows of partitions in a picture: 300 KB. Of more, those that are worst off are told of."""

PAGE_ALIKE_MAX: Final = 24
"""Sentences of one kind about one step of a node. More are counted in one: a broker that dies is an
event for every one of a thousand partitions."""

LIVE_CLERKS_MAX: Final = 4
"""Questions that one console asks its cluster at the same time: a page asks one or two."""

LIVE_QUESTIONS_MAX: Final = 64
"""Questions of all pages that wait for a clerk: more than that is no person."""

LIVE_POLL_MS: Final = 400
"""Between two looks at a live cluster. A person sees a change within half a second; with three idle
brokers it takes 3 % of a core, and each of them is at 1 %."""

LIVE_POLL_SHARE: Final = 5
"""A look that takes long is followed by a rest this many times as long: a cluster of many
partitions gives a console a sixth of a core at most."""

LIVE_UNWATCHED_MS: Final = 5_000
"""After so long without a page nothing is asked of the cluster any more."""

LIVE_FRAMES_MAX: Final = 1_500
"""Pictures of the past that can be gone back to: ten minutes. They share what has not changed."""

LIVE_LOG_MAX: Final = 4_000
"""Sentences, lines of metadata and samples that a console remembers, each: the newest stay."""

LIVE_PARTITIONS_MAX: Final = 2_000
"""Partitions in a picture, those that are not well before all others. What a page can draw."""

LIVE_METADATA_BYTES_MAX: Final = 4 * MIB
"""The longest metadata log that a console tells: it is read anew whenever something was decided."""

WITNESS_LINES_MAX: Final = 25
"""Moments of one kind that a watched node tells a second, 20 us each: a busy one gives a few per
cent of a core to whoever watches it, however much it does. Rare things are always told."""

WITNESS_HEARERS_MAX: Final = 8
"""Consoles that watch one node at the same time."""

WITNESS_BACKLOG_BYTES_MAX: Final = 1 * MIB
"""What a console that does not read leaves with the node, at most; it misses what comes then."""

LIVE_TRACE_MAX: Final = 20_000
"""Lines of what nodes do, and messages between them, that a console remembers, each: minutes of
an idle cluster, 200 bytes each."""

# the desk of a live console

DESK_HEALTH_ROWS_MAX: Final = 5_000
"""Newest rows of the health pipeline that a console reads, some 300 bytes each."""

DESK_RECORDS_MAX: Final = 200
"""Records in one answer: more than a person reads at once, some 100 KiB with their values cut."""

DESK_SCANNED_MAX: Final = 20_000
"""Records that are looked through for a text in one question: about a second here."""

DESK_SCANNED_BYTES_MAX: Final = 32 * MIB
"""Bytes that one question about records may make a broker read."""

DESK_COMPARED_MAX: Final = 100
"""Offsets that are laid side by side, replica by replica."""

DESK_VALUE_BYTES_MAX: Final = 1 * KIB
"""Of a key, value or header in a list of records; the rest is shown on request."""

DESK_VALUE_WHOLE_BYTES_MAX: Final = 256 * KIB
"""Of one value that is shown whole: nobody reads more, and a browser is slow with it."""

DESK_JSON_BYTES_MAX: Final = 4 * MIB
"""A value that is parsed to be laid out as JSON."""

DESK_GROUPS_LAG_MAX: Final = 50
"""Groups whose lag is told in their list: each costs two questions to its coordinator."""

DESK_ROWS_MAX: Final = 2_000
"""Partitions, groups, transactions or members in one answer. What a page can draw as a table."""
