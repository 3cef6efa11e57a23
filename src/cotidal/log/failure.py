"""How a log fails. Each message is a clause that names the partition, the file and the offset.

LogError
  CorruptLog       bytes on disk that are not what was written: found, named, never served
  DamagedSnapshot  a snapshot of the metadata log that is none
  LogOffline       the disk refused (full, input/output error): no more writes, reads go on
  NotOpen          there is no log to work with: it could not be opened
  OutOfRange       a read outside start_offset .. end_offset
  Gone             bytes that were left in their file to be sent, and are no longer there
  WrongTopic       the directory belongs to a topic with another id
"""

from __future__ import annotations

from cotidal.values import Offset, TopicPartition


class LogError(Exception):
    """Any failure of the files of one partition or one log directory."""


class CorruptLog(LogError):
    """Bytes that fail their checksum or contradict their neighbours. All below ``offset`` is
    good: a log that is cut there can be filled again from another replica."""

    def __init__(self, sentence: str, offset: int) -> None:
        super().__init__(sentence)
        self.offset = Offset(offset)

    def __reduce__(self) -> tuple[type[CorruptLog], tuple[str, int]]:
        """It may be found in another process."""
        return type(self), (str(self), self.offset)


class DamagedSnapshot(LogError):
    """A file that should be a snapshot of the metadata log and is not."""


class LogOffline(LogError):
    """The disk failed a write or a sync. What reached it before stays readable."""


class NotOpen(LogError):
    """The log could not be opened, so nothing can be done to it."""

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(f"{partition}: its log is not open")


class OutOfRange(LogError):
    """The offset is not in the log."""


class Gone(LogError):
    """The file was cut since a reader was promised its bytes."""


class WrongTopic(LogError):
    """partition.metadata names another topic id than the one this log was opened for."""
