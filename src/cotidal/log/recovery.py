"""Opening a log: what the files say, and what is mended when they were left in disorder.

After a clean shutdown the files are believed: only lengths and last entries are looked at, and the
end is found from the last index entry on. Otherwise every batch from the recovery point on is
walked with its crc. At the first bad one the segment is cut, and the segments after it go: what
follows a hole must not be served. A hole between two segments counts as one (the tail of the first
never reached the disk), unless it lies below the recovery point or where the log was compacted:
what is there was synced, and Kafka's compaction may leave such gaps (ours does not). Both indexes
and the epochs of the walked part are made anew; those before it too, if the batches there know
others, for a disk that did not sync may keep the batches and lose the file of their epochs.

Each mending is told in a sentence, in the order in which it happened.
"""

from __future__ import annotations

import contextlib
from typing import NamedTuple

from cotidal.log.checkpoint import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    decode_epochs,
    decode_partition_metadata,
    encode_partition_metadata,
)
from cotidal.log.cleaning import CLEANED
from cotidal.log.epochs import EpochLine
from cotidal.log.failure import CorruptLog, WrongTopic
from cotidal.log.filesystem import FileSystem
from cotidal.log.scan import Damage
from cotidal.log.segment import Place, Segment
from cotidal.log.swap import SWAP, finish_swaps
from cotidal.values import Offset, Uuid, WallMillis, uuid_text

_DEBRIS = (".deleted", CLEANED, SWAP, ".tmp")


class Loaded(NamedTuple):
    """The segments as they were found or mended; empty when there was no log."""

    segments: list[Segment]
    end_offset: Offset
    epochs: EpochLine
    epochs_changed: bool
    snapshots_below: int
    """Producer snapshots past this offset rest on transactions that were lost: not to be used."""
    repaired: tuple[str, ...]


class Recovery:
    """The work of one opening. Made, run once and dropped."""

    def __init__(
        self,
        filesystem: FileSystem,
        directory: str,
        *,
        index_interval_bytes: int,
        cleaned_to: int,
        now_wall: WallMillis,
    ) -> None:
        self._filesystem = filesystem
        self._directory = directory
        self._name = directory.rpartition("/")[2]
        self._index_interval_bytes = index_interval_bytes
        self._cleaned_to = cleaned_to
        self._now_wall = now_wall
        self._repaired: list[str] = []
        self._epochs = EpochLine()
        self._snapshots_below = 1 << 62

    def run(
        self, *, topic_id: Uuid, clean: bool, recovery_point: Offset, log_start: Offset
    ) -> Loaded:
        self._filesystem.mkdir(self._directory)
        self._check_topic(topic_id)
        segments = self._list_segments()
        is_told = self._read_epochs()
        before = self._epochs.entries
        if is_told and not clean:
            last = max(log_start, recovery_point - 1)
            is_told = self._agrees(segments, log_start) and self._agrees(segments, last)
        if not is_told and any(segment.size for segment in segments):
            self._epochs = EpochLine()
            self._epochs_from_batches(segments)
            if self._epochs.entries:
                self._say(f"made {LEADER_EPOCHS} anew from the batches")
        end = self._believe(segments) if clean else self._recover(segments, recovery_point)
        self._check_aborted(segments, end)
        self._epochs.truncate_end(end)
        return Loaded(
            segments,
            Offset(end),
            self._epochs,
            self._epochs.entries != before,
            self._snapshots_below,
            tuple(self._repaired),
        )

    # finding

    def _check_topic(self, topic_id: Uuid) -> None:
        path = f"{self._directory}/{PARTITION_METADATA}"
        try:
            found = decode_partition_metadata(self._filesystem.read(path))
        except FileNotFoundError:
            pass
        except ValueError as wrong:
            self._say(f"wrote {PARTITION_METADATA} anew: {wrong}")
        else:
            if found != topic_id:
                raise WrongTopic(
                    f"{self._name}: this is the log of topic id {uuid_text(found)}, "
                    f"not of {uuid_text(topic_id)}"
                )
            return
        self._filesystem.write(path, encode_partition_metadata(topic_id), sync=True)

    def _list_segments(self) -> list[Segment]:
        swapped = finish_swaps(self._filesystem, self._directory)
        if swapped:
            self._say(f"put {swapped} compacted segment(s) in the place of older ones")
        names = self._filesystem.listdir(self._directory)
        bases = [int(name[:-4]) for name in names if _is_log(name)]
        kept = {f"{base:020d}" for base in bases}
        for name in names:
            stem, _, suffix = name.partition(".")
            orphan = suffix in ("index", "timeindex", "txnindex") and stem not in kept
            if name.endswith(_DEBRIS) or (orphan and stem.isdigit()):
                self._filesystem.unlink(f"{self._directory}/{name}")
        return [
            Segment(
                self._filesystem,
                self._directory,
                Offset(base),
                size=self._filesystem.size(f"{self._directory}/{base:020d}.log"),
                created=self._now_wall,
                index_interval_bytes=self._index_interval_bytes,
            )
            for base in bases
        ]

    def _read_epochs(self) -> bool:
        """Whether there is a file that can be read; it may say that there are none, where all
        batches that are left are deleted and only wait to be removed."""
        try:
            data = self._filesystem.read(f"{self._directory}/{LEADER_EPOCHS}")
            self._epochs = EpochLine(decode_epochs(data))
        except FileNotFoundError:
            return False
        except ValueError as wrong:
            self._say(str(wrong))
            return False
        return True

    def _agrees(self, segments: list[Segment], offset: int) -> bool:
        """Whether the batch that holds this offset is of the epoch that was told, if there is one.
        The file is written whole, so one that is older than the log differs at an end of it."""
        holding = [segment for segment in segments if segment.base_offset <= offset]
        if not holding:
            return True
        with contextlib.suppress(CorruptLog):  # what is wrong there is found later
            found = next(holding[-1].good_batches(*holding[-1].locate(offset)), None)
            if found is not None:
                told = self._epochs.epoch_at(max(offset, found.header.base_offset))
                return told == found.header.leader_epoch
        return True

    def _epochs_from_batches(self, segments: list[Segment]) -> None:
        for segment in segments:
            for found in segment.batches():
                if isinstance(found, Damage):
                    return
                if found.header.leader_epoch > self._epochs.latest:
                    self._epochs.assign(found.header.leader_epoch, found.header.base_offset)

    # after a clean shutdown

    def _believe(self, segments: list[Segment]) -> int:
        for segment in segments:
            segment.synced = True
            self._check_indexes(segment)
        if not segments:
            return 0
        active = segments[-1]
        try:
            last = active.offsets.last()
            start = Place(0, active.base_offset)
            place = start if last is None else active.locate(last.offset)
            end: int = place.offset
            for found in active.good_batches(*place):
                end = found.header.next_offset
        except CorruptLog as damaged:
            self._say(f"not as a clean shutdown leaves it ({damaged}): recovered")
            return self._recover(segments, active.base_offset)
        active.begin_tail(end)
        return end

    def _check_indexes(self, segment: Segment) -> None:
        """Both are made anew when one is wrong: they are written together."""
        for index, suffix in ((segment.offsets, ".index"), (segment.times, ".timeindex")):
            fault = index.fault(segment_bytes=segment.size)
            if fault is not None:
                self._say(f"made {_file_name(segment, suffix)} anew: {fault}")
                segment.rebuild_indexes()
                return

    # after a crash

    def _recover(self, segments: list[Segment], recovery_point: int) -> int:
        end: int = segments[0].base_offset if segments else 0
        number = 0
        while number < len(segments):
            segment = segments[number]
            after = segments[number + 1].base_offset if number + 1 < len(segments) else 1 << 62
            number += 1
            if after <= recovery_point:
                segment.synced = True
                self._check_indexes(segment)
                end = after
                continue
            synced = segment.base_offset <= max(recovery_point, self._cleaned_to)
            if segment.base_offset > end and not synced:
                self._drop(segments, number - 1, f"offsets from {end} on are missing before it")
                break
            end, whole = self._recover_segment(segment, recovery_point)
            if not whole:
                self._drop(segments, number, "what comes before it was cut")
                break
            if number < len(segments):
                segment.seal()
                segment.forget_recent()
        if segments:
            segments[-1].begin_tail(end)
        return end

    def _recover_segment(self, segment: Segment, recovery_point: int) -> tuple[int, bool]:
        """Its end offset, and whether the file was good to its last byte."""
        file = segment.file()
        place = self._trusted(segment, recovery_point)
        segment.rewind(place)
        self._epochs.truncate_end(place.offset)
        end = place.offset
        epoch = self._epochs.latest
        for found in segment.batches(
            *place, check_crc=True, end=file.size, epoch=epoch, synced_below=recovery_point
        ):
            if isinstance(found, Damage):
                cut = file.size - found.position
                after = f"after offset {end - 1}" if end > segment.base_offset else "from its start"
                self._say(
                    f"cut {cut} bytes {after} in {_file_name(segment, '.log')}: "
                    f"{found.reason} at byte {found.position}"
                )
                segment.cut_back()
                file.sync()  # or the next crash brings back what was cut, under newer segments
                return end, False
            header = found.header
            if header.leader_epoch > self._epochs.latest:
                self._epochs.assign(header.leader_epoch, header.base_offset)
            segment.note(header.size_bytes, header.next_offset, header.max_timestamp)
            end = header.next_offset
        return end, True

    def _trusted(self, segment: Segment, recovery_point: int) -> Place:
        """Where in a segment to begin: at the recovery point, if the index leads there; what lies
        before it was synced, index entries too. At its start otherwise."""
        if recovery_point > segment.base_offset and segment.size:
            with contextlib.suppress(CorruptLog):
                whole = (
                    segment.offsets.fault(segment_bytes=segment.size) is None
                    and segment.times.fault(segment_bytes=segment.size) is None
                )
                if whole:
                    segment.offsets.entries.truncate(segment.offsets.ascending_prefix())
                    segment.times.entries.truncate(segment.times.ascending_prefix())
                    place = segment.locate(recovery_point - 1)
                    if place.offset < recovery_point:
                        return place
        segment.reset_indexes()
        return Place(0, segment.base_offset)

    def _drop(self, segments: list[Segment], first: int, why: str) -> None:
        for segment in reversed(segments[first:]):
            self._say(f"removed {_file_name(segment, '.log')} ({segment.size} bytes): {why}")
            segment.unlink()
        if len(segments) > first:
            self._filesystem.sync_directory(self._directory)
        del segments[first:]

    def _check_aborted(self, segments: list[Segment], end: int) -> None:
        for number, segment in enumerate(segments):
            fault = segment.aborted.mend(segment.base_offset)
            known = segment.aborted.entries()
            if fault is not None:
                self._say(f"cut {_file_name(segment, '.txnindex')}: {fault}")
                sound = known[-1].last_offset + 1 if known else segment.base_offset
                self._snapshots_below = min(self._snapshots_below, sound)
            segment.aborted.truncate_from(
                segments[number + 1].base_offset if number + 1 < len(segments) else end
            )

    def _say(self, sentence: str) -> None:
        self._repaired.append(f"{self._name}: {sentence}")


def _is_log(name: str) -> bool:
    return len(name) == 24 and name.endswith(".log") and name[:20].isdigit()


def _file_name(segment: Segment, suffix: str) -> str:
    return segment.path.rpartition("/")[2] + suffix
