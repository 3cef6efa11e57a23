"""Bytes <-> values. Pure. See codec (messages), frames, batch, records, record_framing."""
