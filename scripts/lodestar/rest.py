"""The few calls of a Lodestar node's REST API that the devnet needs, each with a time limit."""

import http.client
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

HOST = "127.0.0.1"


class RestError(Exception):
    """The node did not answer, or not with a 2xx and JSON."""


class NotFoundError(RestError):
    """The node answered 404."""


@dataclass(frozen=True)
class Head:
    """The head of one node's chain: slot, root as lower-case `0x…`, and whether its payload is unverified."""

    slot: int
    root: str
    optimistic: bool


def call(port: int, path: str, *, method: str = "GET", body: object = None, timeout: float = 2.0) -> dict[str, Any]:
    """One request on a connection of its own, with `body` as JSON; `timeout` in seconds holds for each read.

    :raises RestError: no connection, no answer in time, a status other than 2xx, or no JSON object in the body.
    """
    connection = http.client.HTTPConnection(HOST, port, timeout=timeout)
    try:
        if body is None:
            connection.request(method, path)
        else:
            connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise RestError(f"{method} {path}: {str(error) or type(error).__name__}") from error
    finally:
        connection.close()
    if not 200 <= answer.status < 300:
        kind = NotFoundError if answer.status == http.HTTPStatus.NOT_FOUND else RestError
        raise kind(f"{method} {path}: {answer.status} {content[:200]!r}")
    if not content:
        return {}
    try:
        parsed = json.loads(content)
    except ValueError as error:
        raise RestError(f"{method} {path}: {content[:200]!r} is not JSON") from error
    if not isinstance(parsed, dict):
        raise RestError(f"{method} {path}: {content[:200]!r} is not a JSON object")
    return parsed


def head(port: int, timeout: float = 2.0) -> Head:
    """The node's present head.

    :raises RestError: see `call`.
    """
    answer = call(port, "/eth/v1/beacon/headers/head", timeout=timeout)
    data = answer["data"]
    return Head(int(data["header"]["message"]["slot"]), data["root"].lower(), bool(answer.get("execution_optimistic")))


def has_lost_its_head(port: int, timeout: float = 2.0) -> bool:
    """Whether the node has a head, but not its block: it was killed while it moved that to its archive.

    :raises RestError: see `call`.
    """
    try:
        head(port, timeout)
    except NotFoundError:
        return int(call(port, "/eth/v1/node/syncing", timeout=timeout)["data"]["head_slot"]) > 0
    return False


def peer_id(port: int, timeout: float = 2.0) -> str:
    """The node's libp2p id.

    :raises RestError: see `call`.
    """
    identity: str = call(port, "/eth/v1/node/identity", timeout=timeout)["data"]["peer_id"]
    return identity


def connected_peers(port: int, timeout: float = 2.0) -> set[str]:
    """The libp2p ids of the peers the node is connected to.

    :raises RestError: see `call`.
    """
    peers = call(port, "/eth/v1/node/peers?state=connected", timeout=timeout)["data"]
    return {peer["peer_id"] for peer in peers}


def connect(port: int, peer: str, peer_port: int, timeout: float = 5.0) -> None:
    """Have the node dial `peer`, which listens for libp2p on `peer_port`.

    :raises RestError: see `call`.
    """
    query = urlencode({"peerId": peer, "multiaddr": f"/ip4/{HOST}/tcp/{peer_port}"})
    call(port, f"/eth/v1/lodestar/connect_peer?{query}", method="POST", timeout=timeout)


def disconnect(port: int, peer: str, timeout: float = 5.0) -> None:
    """Have the node hang up on `peer`.

    :raises RestError: see `call`.
    """
    query = urlencode({"peerId": peer})
    call(port, f"/eth/v1/lodestar/disconnect_peer?{query}", method="POST", timeout=timeout)
