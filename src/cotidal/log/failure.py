"""How a log fails. Each message is one sentence that names the partition and the file.

LogError
  CorruptLog       bytes on disk that are not what was written: found, named, never served
  LogOffline       the disk refused (full, input/output error): no more writes, reads go on
  OutOfRange       a read outside start_offset .. end_offset
  WrongTopic       the directory belongs to a topic with another id
"""

from __future__ import annotations


class LogError(Exception):
    """Any failure of the files of one partition or one log directory."""


class CorruptLog(LogError):
    """Bytes that fail their checksum or contradict their neighbours."""


class LogOffline(LogError):
    """The disk failed a write or a sync. What reached it before stays readable."""


class OutOfRange(LogError):
    """The offset is not in the log."""


class WrongTopic(LogError):
    """partition.metadata names another topic id than the one this log was opened for."""
