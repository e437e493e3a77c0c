"""What the beacon nodes of the benchmark of routing answer: all the same, by the clock."""

import json
import time
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

SLOTS_PER_EPOCH = 32
VALIDATORS = 64
"""Validators that have duties."""


class Answers:
    """What every node answers, by request line; heads come by the clock."""

    def __init__(self, slot_duration: float, genesis_time: int) -> None:
        self._slot_duration = slot_duration
        self._genesis_time = genesis_time
        self._made: dict[bytes, bytes] = {}
        spec = {
            "PRESET_BASE": "mainnet",
            "SLOTS_PER_EPOCH": str(SLOTS_PER_EPOCH),
            "SLOT_DURATION_MS": str(round(slot_duration * 1000)),
            "GENESIS_FORK_VERSION": "0x00000000",
        }
        genesis = {"genesis_time": str(genesis_time), "genesis_validators_root": root_of("validators")}
        self._fixed: Mapping[str, object] = {
            "/eth/v1/beacon/genesis": {"data": genesis},
            "/eth/v1/config/spec": {"data": spec},
            "/eth/v1/node/version": {"data": {"version": "bench/1"}},
            "/eth/v1/node/peer_count": {
                "data": {"connected": "64", "connecting": "0", "disconnected": "0", "disconnecting": "0"}
            },
        }

    @property
    def slot(self) -> int:
        """The present slot."""
        return int((time.time() - self._genesis_time) // self._slot_duration)

    def starts_in(self, slot: int) -> float:
        """Return the seconds until a slot begins."""
        return self._genesis_time + slot * self._slot_duration - time.time()

    def forget(self) -> None:
        """Make answers anew: a slot has begun."""
        self._made.clear()

    def head(self) -> bytes:
        """Return the event of the present head."""
        slot = self.slot
        epoch = slot // SLOTS_PER_EPOCH
        event = {
            "slot": str(slot),
            "block": root_of(slot),
            "state": root_of(-slot),
            "epoch_transition": slot % SLOTS_PER_EPOCH == 0,
            "previous_duty_dependent_root": _dependent(epoch),
            "current_duty_dependent_root": _dependent(epoch + 1),
            "execution_optimistic": False,
        }
        text = f"event: head\ndata: {json.dumps(event)}\n\n".encode()
        return b"%x\r\n%s\r\n" % (len(text), text)

    def to(self, target: bytes) -> bytes:
        """Return the response to a request for a target."""
        made = self._made.get(target)
        if made is None:
            path, _, query = target.decode().partition("?")
            found = self._body(path, dict(pair.split("=") for pair in query.split("&") if pair))
            status = "404 Not Found" if found is None else "200 OK"
            body = b"" if found is NOTHING else json.dumps(found).encode()
            head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            made = self._made[target] = head.encode() + body
        return made

    def _body(self, path: str, query: Mapping[str, str]) -> object:
        if path in self._fixed:
            return self._fixed[path]
        if "/pool/" in path or path.endswith(("_subscriptions", "aggregate_and_proofs", "prepare_beacon_proposer")):
            return NOTHING
        slot, sourced = self.slot, {"execution_optimistic": False, "finalized": False}
        if path == "/eth/v1/beacon/headers/head":
            message = {"slot": str(slot), "proposer_index": "1", "parent_root": root_of(slot - 1)}
            message |= {"state_root": root_of(-slot), "body_root": root_of(slot)}
            header = {"message": message, "signature": "0x" + "ab" * 96}
            return {"data": {"root": root_of(slot), "canonical": True, "header": header}, **sourced}
        if path == "/eth/v1/node/syncing":
            data: dict[str, Any] = {"head_slot": str(slot), "sync_distance": "0", "is_syncing": False}
            return {"data": data | {"is_optimistic": False, "el_offline": False}}
        if path.endswith("/finality_checkpoints"):
            marks = {name: _checkpoint(0) for name in ("previous_justified", "current_justified", "finalized")}
            return {"data": marks, **sourced}
        if path == "/eth/v1/beacon/blocks/head/root":
            return {"data": {"root": root_of(slot)}, **sourced}
        if path == "/eth/v1/validator/attestation_data":
            asked = int(query["slot"])
            epoch = asked // SLOTS_PER_EPOCH
            # As nodes do: for a slot that is over, the block that was the head in it.
            data = {"slot": str(asked), "index": "0", "beacon_block_root": root_of(min(asked, slot))}
            return {"data": data | {"source": _checkpoint(epoch - 1), "target": _checkpoint(epoch)}}
        if "/validator/duties/attester/" in path:
            epoch = int(path.rpartition("/")[2])
            duties = [
                {
                    "pubkey": f"0x{index:096x}",
                    "validator_index": str(index),
                    "committee_index": str(index % 64),
                    "committee_length": "512",
                    "committees_at_slot": "64",
                    "validator_committee_index": str(index % 512),
                    "slot": str(epoch * SLOTS_PER_EPOCH + index % SLOTS_PER_EPOCH),
                }
                for index in range(VALIDATORS)
            ]
            return {"dependent_root": _dependent(epoch), "execution_optimistic": False, "data": duties}
        return None


class _Nothing:
    """The body of an answer that has none."""


NOTHING = _Nothing()


def root_of(seed: object) -> str:
    """Return a root made of something, as `0x…`."""
    return "0x" + sha256(str(seed).encode()).hexdigest()


def _dependent(epoch: int) -> str:
    return root_of(f"duties of {epoch}")


def _checkpoint(epoch: int) -> dict[str, str]:
    return {"epoch": str(epoch), "root": root_of(f"epoch {epoch}")}
