"""One blocking connection to one broker.

Opening it negotiates versions (ApiVersions, KIP-511): a request goes out in the newest version
that both sides speak. Requests may be sent ahead of their answers; answers come back in the order
of the requests, and a correlation id that does not fit closes the connection. An answer that
claims to be larger than RESPONSE_BYTES_MAX is refused before it is read.

After any failure the connection is closed: what its socket still holds belongs to nobody.
"""

from __future__ import annotations

import socket
import time
from collections import deque
from types import TracebackType
from typing import Final, NamedTuple, TypeVar

from cotidal import __version__
from cotidal.client.addresses import Address
from cotidal.client.failures import ProtocolMismatch, TimedOut, Unreachable
from cotidal.errors import ErrorCode, PeerError
from cotidal.limits import RESPONSE_BYTES_MAX
from cotidal.messages.rpc.apis import APIS, ApiKey
from cotidal.wire.codec import decode_response
from cotidal.wire.frames import read_response_header, request_buffers

Response = TypeVar("Response")

CLIENT_ID: Final = "cotidal"
RECEIVE_BYTES: Final = 1024 * 1024
UNSUPPORTED_VERSION: Final = int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2, "big")


class Sent(NamedTuple):
    """A request whose answer has not been read."""

    key: ApiKey
    version: int
    correlation_id: int


class Connection:
    """``Connection(address)`` connects and negotiates, or raises Unreachable."""

    __slots__ = ("_client_id", "_correlation_id", "_pending", "_socket", "_versions", "address")

    def __init__(
        self, address: Address, *, timeout_s: float = 5.0, client_id: str = CLIENT_ID
    ) -> None:
        """``client_id``: how it calls itself."""
        self.address = address
        self._client_id = client_id
        self._pending: deque[Sent] = deque()
        self._correlation_id = 0
        self._versions: dict[int, tuple[int, int]] = {}
        try:
            self._socket: socket.socket | None = socket.create_connection(address, timeout_s)
        except OSError as error:
            raise Unreachable(str(address), _reason(error, timeout_s)) from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._negotiate(timeout_s)

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def is_open(self) -> bool:
        return self._socket is not None

    def fileno(self) -> int:
        """For select(): readable when an answer is coming."""
        return self._socket.fileno() if self._socket else -1

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._pending.clear()

    def serves(self, key: ApiKey) -> bool:
        """Whether the other side has named this API, in whatever version."""
        return key in self._versions

    def version(self, key: ApiKey) -> int:
        """The newest version of an API that both sides speak."""
        api = APIS[key]
        theirs = self._versions.get(key)
        if theirs is None:
            raise ProtocolMismatch(f"{self.address} does not serve {api.name}")
        version = min(api.last_stable_version, theirs[1])
        if version < max(api.first_version, theirs[0]):
            raise ProtocolMismatch(
                f"{self.address} serves {api.name} in versions {theirs[0]} to {theirs[1]}, "
                f"this client {api.first_version} to {api.last_stable_version}"
            )
        return version

    def call(
        self, key: ApiKey, request: object, answer: type[Response], *, timeout_s: float = 30.0
    ) -> Response:
        """Send a request and wait for its answer."""
        self.send(key, request, timeout_s=timeout_s)
        return self.receive(answer, timeout_s=timeout_s)

    def send(
        self, key: ApiKey, request: object, *, timeout_s: float = 30.0, answered: bool = True
    ) -> None:
        """Send a request; a later ``receive`` reads its answer, unless it has none (acks=0)."""
        self._send(key, self.version(key), request, timeout_s=timeout_s, answered=answered)

    def receive(self, answer: type[Response], *, timeout_s: float = 30.0) -> Response:
        """The answer to the oldest request that has not been answered."""
        sent = self._pending[0]
        frame = self._receive_frame(sent, timeout_s)
        return self._decode(sent, frame, answer)

    def _negotiate(self, timeout_s: float) -> None:
        from cotidal.messages.rpc.api_versions import ApiVersionsRequest, ApiVersionsResponse

        key = ApiKey.API_VERSIONS
        version = APIS[key].last_stable_version
        for _ in range(2):
            request = ApiVersionsRequest(CLIENT_ID, __version__)
            self._send(key, version, request, timeout_s=timeout_s)
            sent = self._pending[0]
            frame = self._receive_frame(sent, timeout_s)
            # A broker that does not know our version answers in version 0, with what it knows.
            if version and frame[4:6] == UNSUPPORTED_VERSION:
                self._pending[0] = sent._replace(version=0)
            response = self._decode(self._pending[0], frame, ApiVersionsResponse)
            self._versions = {
                api.api_key: (api.min_version, api.max_version) for api in response.api_keys
            }
            if response.error_code != ErrorCode.UNSUPPORTED_VERSION or version == 0:
                break
            version = min(self._versions.get(key, (0, 0))[1], version - 1)
        if not self._versions:
            self.close()
            raise ProtocolMismatch(f"{self.address} does not say which versions it speaks")

    def _send(
        self, key: ApiKey, version: int, request: object, *, timeout_s: float, answered: bool = True
    ) -> None:
        if self._socket is None:
            raise Unreachable(str(self.address), "the connection is closed")
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        buffers = request_buffers(key, version, self._correlation_id, self._client_id, request)
        try:
            self._socket.settimeout(timeout_s)
            # One copy, so that a small request is one packet.
            self._socket.sendall(b"".join(buffers))
        except OSError as error:
            raise self._lost(error, timeout_s) from error
        if answered:
            self._pending.append(Sent(key, version, self._correlation_id))

    def _receive_frame(self, sent: Sent, timeout_s: float) -> bytes:
        deadline = time.monotonic() + timeout_s
        size = int.from_bytes(self._receive_exactly(4, deadline, sent, timeout_s), "big")
        if not 4 <= size <= RESPONSE_BYTES_MAX:
            self.close()
            raise ProtocolMismatch(
                f"{self.address} announced an answer of {size} bytes, which is not plausible: "
                "is it a Kafka broker?"
            )
        return self._receive_exactly(size, deadline, sent, timeout_s)

    def _receive_exactly(self, size: int, deadline: float, sent: Sent, timeout_s: float) -> bytes:
        """Grows with the bytes that come, never with the bytes that are promised."""
        pieces: list[bytes] = []
        missing = size
        try:
            while missing:
                if self._socket is None:
                    raise Unreachable(str(self.address), "the connection is closed")
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    raise TimeoutError
                self._socket.settimeout(remaining)
                piece = self._socket.recv(min(missing, RECEIVE_BYTES))
                if not piece:
                    raise ConnectionResetError
                pieces.append(piece)
                missing -= len(piece)
        except TimeoutError as error:
            self.close()
            what = f"{self.address} was asked for {APIS[sent.key].name} and"
            raise TimedOut(what, seconds=round(timeout_s, 1)) from error
        except OSError as error:
            raise self._lost(error, timeout_s) from error
        return b"".join(pieces)

    def _decode(self, sent: Sent, frame: bytes, answer: type[Response]) -> Response:
        try:
            correlation_id, position = read_response_header(frame, sent.key, sent.version)
            if correlation_id != sent.correlation_id:
                raise PeerError("it answers a request that was not asked")
            response = decode_response(sent.key, sent.version, frame, position)
        except PeerError as error:
            self.close()
            raise ProtocolMismatch(
                f"{self.address} sent an answer that cannot be read: {error}"
            ) from error
        assert isinstance(response, answer)
        self._pending.popleft()
        return response

    def _lost(self, error: OSError, timeout_s: float) -> Unreachable:
        self.close()
        return Unreachable(str(self.address), _reason(error, timeout_s))


def _reason(error: OSError, timeout_s: float) -> str:
    match error:
        case ConnectionRefusedError():
            return "connection refused"
        case ConnectionResetError() | BrokenPipeError():
            return "the connection was closed by the other side"
        case TimeoutError():
            return f"no answer within {timeout_s:g} s"
        case socket.gaierror():
            return "the host name is not known"
        case _:
            return (error.strerror or str(error)).lower()
