"""A broker that says what a test tells it to, on a real socket.

``scripted_broker({ApiKey.METADATA: answer})``: ``answer(request, version)`` returns a response, or
Raw bytes to be sent instead of one, or HANG_UP, or SILENCE. Several answers in a list are used one
after another, the last one for ever. ApiVersions is answered with Kafka's own ranges unless the
script has something else to say.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from cotidal.messages.rpc.api_versions import ApiVersion, ApiVersionsResponse
from cotidal.messages.rpc.apis import APIS, ApiKey
from cotidal.wire.codec import decode_request
from cotidal.wire.frames import FrameReader, read_request_header, response_buffers


class Raw(NamedTuple):
    data: bytes


HANG_UP = object()
SILENCE = object()

Answer = Callable[[Any, int], object]


def all_versions(_request: Any, _version: int) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        api_keys=tuple(
            ApiVersion(api.key, api.first_version, api.last_stable_version) for api in APIS.values()
        )
    )


class ScriptedBroker:
    def __init__(self, script: dict[ApiKey, Answer | list[Answer]]) -> None:
        self._script = {
            key: list(answers) if isinstance(answers, list) else [answers]
            for key, answers in {ApiKey.API_VERSIONS: all_versions, **script}.items()
        }
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.requests: list[tuple[ApiKey, int, Any]] = []
        self.connections = 0
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def asked(self, key: ApiKey) -> list[Any]:
        return [request for asked, _, request in self.requests if asked == key]

    def script(self, key: ApiKey, *answers: Answer) -> None:
        self._script[key] = list(answers)

    def close(self) -> None:
        # Shut down first: it wakes the thread that waits in accept, close alone does not.
        for each in (self._listener, *self._sockets):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            each.close()
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._sockets.append(client)
            thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        reader = FrameReader(1 << 24)
        try:
            while data := client.recv(65536):
                for frame in reader.feed(data):
                    if not self._answer(client, frame):
                        client.shutdown(socket.SHUT_RDWR)
                        return
        except OSError:
            pass

    def _answer(self, client: socket.socket, frame: Any) -> bool:
        header = read_request_header(frame)
        key = ApiKey(header.api_key)
        request = decode_request(key, header.api_version, frame, header.body_position)
        self.requests.append((key, header.api_version, request))
        answers = self._script[key]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        said = answer(request, header.api_version)
        if said is HANG_UP:
            return False
        if said is SILENCE:
            return True
        if isinstance(said, Raw):
            client.sendall(said.data)
        else:
            version = header.api_version
            if isinstance(said, tuple) and type(said) is tuple:
                said, version = said
            buffers = response_buffers(key, version, header.correlation_id, said)
            client.sendall(b"".join(buffers))
        return True


@pytest.fixture
def scripted_broker() -> Iterator[Callable[..., ScriptedBroker]]:
    running: list[ScriptedBroker] = []

    def start(script: dict[ApiKey, Answer | list[Answer]] | None = None) -> ScriptedBroker:
        running.append(ScriptedBroker(script or {}))
        return running[-1]

    yield start
    for broker in running:
        broker.close()


@pytest.fixture
def metadata_of() -> Callable[..., Answer]:
    """``metadata_of({1: broker, 2: other}, topic=("orders", (1, 2)))`` answers Metadata."""
    from cotidal.messages.rpc.metadata import (
        MetadataResponse,
        MetadataResponseBroker,
        MetadataResponsePartition,
        MetadataResponseTopic,
    )
    from cotidal.values import Uuid

    def answer(brokers: dict[int, ScriptedBroker], topic: tuple[str, tuple[int, ...]]) -> Answer:
        name, leaders = topic
        known = MetadataResponseTopic(
            name=name,
            topic_id=Uuid(name.encode().ljust(16, b".")),
            partitions=tuple(
                MetadataResponsePartition(0, at, leader, 0, (leader,), (leader,))
                for at, leader in enumerate(leaders)
            ),
        )

        def said(request: Any, _version: int) -> MetadataResponse:
            wanted = None if request.topics is None else [each.name for each in request.topics]
            topics = (
                [known]
                if wanted is None
                else [known if each == name else MetadataResponseTopic(3, each) for each in wanted]
            )
            return MetadataResponse(
                brokers=tuple(
                    MetadataResponseBroker(node, "127.0.0.1", broker.port)
                    for node, broker in brokers.items()
                ),
                cluster_id="scripted",
                controller_id=min(brokers),
                topics=tuple(topics),
            )

        return said

    return answer


@pytest.fixture
def hang_up() -> Answer:
    return lambda _request, _version: HANG_UP


@pytest.fixture
def silence() -> Answer:
    return lambda _request, _version: SILENCE


@pytest.fixture
def raw() -> Callable[[bytes], Answer]:
    return lambda data: lambda _request, _version: Raw(data)
