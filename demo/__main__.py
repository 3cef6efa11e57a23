"""The story that `make demo` tells: three brokers, records, a leader killed, nothing lost, and what
pipelines on Spark say of it.

Everything in it is real: processes of their own, files on disk, librdkafka as the client. It checks
what it claims and exits 1 with the reason when a claim does not hold.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Final

from cotidal.testing.cluster import ClusterFailed, ProcessCluster
from demo.clients import PARTITION, TOPIC, Admin, Writer, read_back, write_to_the_leader_alone
from demo.pipelines import tell_verdict
from demo.telling import Failed, say, tell

RECORDS: Final = 20_000
"""Before the leader dies, while it is down, and after it is back: so many each."""
LONELY: Final = 100
BROKERS: Final = 3


def run(cluster: ProcessCluster) -> None:
    begun = time.perf_counter()
    cluster.start()
    seconds = since(begun)
    bootstrap = cluster.bootstrap
    tell(f"Three brokers, a KRaft quorum of three: {bootstrap}", seconds)
    admin = Admin(bootstrap)
    begun = time.perf_counter()
    admin.create_topic()
    tell(f"A topic: '{TOPIC}', three replicas, min.insync.replicas=2", since(begun))
    writer = Writer(bootstrap)
    begun = time.perf_counter()
    writer.write(RECORDS)
    tell(f"{len(writer.acked):,} records acknowledged with acks=all by librdkafka", since(begun))

    leader = admin.leader()
    lonely = leave_alone(cluster, leader)
    lonely_log = cluster.log(leader, PARTITION)
    begun = time.perf_counter()
    cluster.kill(leader)
    wake(cluster, leader)
    tell(f"Node {leader}, which leads, is killed with -9; the writer goes on")
    writer.write(RECORDS)
    gap = writer.longest_gap_s(begun)
    tell(f"Node {admin.leader()} leads now; no acknowledgement for {gap * 1000:,.0f} ms", gap)

    cluster.start_again()
    writer.write(RECORDS)
    seconds = admin.until_in_sync(BROKERS)
    compare_logs(cluster, leader, lonely_log)
    tell(f"Node {leader} is back, has cut its tail and caught up: in sync again", seconds)
    tell(f"All {BROKERS} logs are equal, byte for byte")
    check(writer.acked, read_back(bootstrap), lonely)
    tell_verdict(bootstrap, str(cluster.data), writer.acked)

    begun = time.perf_counter()
    status = cluster.stop()
    if status != 0:
        raise Failed(f"it ended with status {status} after SIGTERM")
    tell("Stopped with SIGTERM: leaderships handed over, flushed, exit 0", since(begun))


def leave_alone(cluster: ProcessCluster, leader: int) -> int:
    """The followers hear nothing while the leader takes more with acks=1: a tail of its own."""
    for node in others(leader):
        cluster.pause(node)
    acked = write_to_the_leader_alone(cluster.bootstrap, LONELY)
    if not acked:
        raise Failed("the leader did not take records with acks=1 while its followers were paused")
    tell(f"Followers paused; {acked} more records with acks=1 are on the leader alone")
    return acked


def wake(cluster: ProcessCluster, leader: int) -> None:
    for node in others(leader):
        cluster.resume(node)


def others(leader: int) -> list[int]:
    return [node for node in range(1, BROKERS + 1) if node != leader]


def compare_logs(cluster: ProcessCluster, old_leader: int, its_old_log: bytes) -> None:
    logs = [cluster.log(node, PARTITION) for node in range(1, BROKERS + 1)]
    if any(log != logs[0] for log in logs):
        raise Failed(f"the logs differ: {', '.join(f'{len(log):,} bytes' for log in logs)}")
    if cluster.log(old_leader, PARTITION).startswith(its_old_log):
        raise Failed("the old leader still has the tail that nobody else had")


def check(acked: dict[int, int], values: list[int], lonely: int) -> None:
    """What was acknowledged with acks=all is there once, in order, where it was said to be."""
    at = {number: offset for offset, number in enumerate(values)}
    lost = [number for number in acked if number not in at]
    if lost:
        raise Failed(f"{len(lost)} acknowledged records are gone, the first is {lost[0]}")
    if len(at) != len(values):
        raise Failed("a record is there twice")
    if any(at[number] != offset for number, offset in acked.items()):
        raise Failed("a record is not at the offset that was acknowledged")
    kept = [number for number in values if number >= 0]
    if kept != sorted(kept):
        raise Failed("the order of records has changed")
    tell(f"Read back: {len(kept):,} with acks=all, 0 lost, 0 twice, order and offsets kept")
    drowned = lonely - (len(values) - len(kept))
    tell(f"Of {lonely} with acks=1, {drowned} went with their leader: acks=1 promises no more")


def since(begun: float) -> float:
    return time.perf_counter() - begun


def main() -> int:
    say("cotidal: a log that keeps what it acknowledged\n")
    begun = time.perf_counter()
    cluster = ProcessCluster(BROKERS, settings={"cotidal.events.enable": "true"})
    try:
        run(cluster)
    except (Failed, ClusterFailed) as failed:
        say(f"\nFAILED: {failed}")
        return 1
    finally:
        cluster.end()
    say(f"\nNothing acknowledged with acks=all was lost. ({since(begun):.1f} s)")
    say("Your own: make up, then point any Kafka client at localhost:9092")
    return 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
