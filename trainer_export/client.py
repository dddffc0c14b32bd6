"""The driver's and the trainer's side, in one file: needs httpx, and neither Django nor torch nor numpy.

    client = TitoClient("http://127.0.0.1:8000", token=ADMIN_TOKEN)
    session = client.create(group_id="g1", group_size=8)
    run_agent(base_url=session.openai_base_url, api_key=session.key)
    session.finish("completed", reward=1.0)

    for group in client.stream(shape="miles"):
        train(group.rows)
        group.ack()

What may be said twice without harm is repeated when the server is away for a moment.
"""

import random
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import httpx

Json = dict[str, Any]

_PAUSES_S = (0.2, 0.5, 1.0, 2.0, 4.0)
_AGAIN = frozenset({429, 502, 503, 504})


class ServerError(Exception):
    """What the server refused, or could not do."""

    def __init__(self, status: int, code: str, text: str) -> None:
        super().__init__(f"{status} {code}: {text}")
        self.status = status
        self.code = code
        """As in `X-Tito-Error-Code`; "" where the answer was not ours."""
        self.text = text


class LeaseLost(Exception):
    """The group was handed to somebody else meanwhile: do not count what was trained on it."""


@dataclass(frozen=True, slots=True)
class Samples:
    """The training samples of one session."""

    samples: list[Json]
    session_metadata: Json
    empty_reason: str | None
    """`no_records` or `all_truncated` where there are none."""


@dataclass(frozen=True, slots=True)
class Reward:
    """A reward as it is stored."""

    key: str
    node: int | None
    created: bool
    """False: the same had been reported before."""


class Session:
    """One rollout."""

    def __init__(self, client: "TitoClient", id: str, key: str) -> None:
        self._client = client
        self.id = id
        self.key = key
        """What the agent shows instead of an API key."""

    @property
    def openai_base_url(self) -> str:
        """For OpenAI's SDKs."""
        return f"{self._client.base_url}/sessions/{self.id}/v1"

    @property
    def anthropic_base_url(self) -> str:
        """For Anthropic's SDKs."""
        return f"{self._client.base_url}/sessions/{self.id}"

    def finish(
        self, status: str = "completed", *, reward: float | None = None, metadata: Json | None = None
    ) -> Json:
        """The rollout has ended; says how far its group is."""
        body = {"status": status, "reward": reward, "metadata": metadata}
        return self._client.call("POST", f"/sessions/{self.id}/finish", json=body)

    def reward(
        self,
        value: float,
        *,
        node: int | None = None,
        leaf: int | None = None,
        response_id: str | None = None,
        name: str = "reward",
        weight: float = 1.0,
        source: str = "client",
        key: str | None = None,
    ) -> Reward:
        """Report a reward for the session, or for one node by its number or its response id.

        The same report twice is one reward; `key` names it, so that other values under it are refused.
        """
        body = {
            "value": value,
            "node": node,
            "leaf": leaf,
            "response_id": response_id,
            "name": name,
            "weight": weight,
            "source": source,
            "key": key,
        }
        answer = self._client.call("POST", f"/sessions/{self.id}/rewards", json=body)
        (stored,) = answer["rewards"]
        return Reward(stored["key"], stored["node"], stored["created"])

    def samples(self, *, max_seq_len: int | None = None, metadata: Json | None = None) -> Samples:
        """The training samples as they stand now."""
        body = {"max_seq_len": max_seq_len, "metadata": metadata}
        answer = self._client.call("POST", f"/sessions/{self.id}/samples", json=body)
        return Samples(answer["samples"], answer["session_metadata"], answer["empty_reason"])

    def delete(self) -> None:
        """Close and hide it; rewards may still come, by the admin token."""
        self._client.call("DELETE", f"/sessions/{self.id}", repeat=False)


class Export:
    """An export job."""

    def __init__(self, client: "TitoClient", id: str) -> None:
        self._client = client
        self.id = id

    def show(self) -> Json:
        """State, shards, report."""
        return self._client.call("GET", f"/exports/{self.id}")

    def wait(self, *, timeout_s: float = 3600.0, poll_s: float = 1.0) -> Json:
        """The job once it is done. Raises ServerError where it ends otherwise, TimeoutError."""
        deadline = time.monotonic() + timeout_s
        while True:
            job = self.show()
            if job["state"] == "done":
                return job
            if job["state"] in ("failed", "cancelled"):
                raise ServerError(200, f"export_{job['state']}", job["error"] or "")
            if time.monotonic() > deadline:
                raise TimeoutError(f"export {self.id} is {job['state']} after {timeout_s:g} s")
            time.sleep(poll_s)

    def cancel(self) -> Json:
        """Nothing of it becomes visible."""
        return self._client.call("POST", f"/exports/{self.id}/cancel", repeat=False)

    def resume(self) -> Json:
        """Go on with a failed or cancelled job."""
        return self._client.call("POST", f"/exports/{self.id}/resume", repeat=False)


@dataclass(frozen=True, slots=True)
class Group:
    """One rollout group, this consumer's until its lease runs out."""

    client: "TitoClient"
    id: int
    """Stable: the same group has it whenever it is handed out."""
    unit: str
    group_id: str | None
    late: bool
    deliveries: int
    rows: list[Json]
    lease: str

    def ack(self) -> None:
        """It is trained on: never handed out again. Raises LeaseLost where somebody else has it by now."""
        self._settle({})

    def release(self) -> None:
        """It will not be trained on here: the next who asks gets it."""
        self._settle({"release": True})

    def _settle(self, more: Json) -> None:
        body = {"lease": self.lease, "ids": [self.id], **more}
        answer = self.client.call("POST", "/samples/ack", json=body)
        if answer["lost"]:
            raise LeaseLost(f"group {self.id} ({self.unit}) was handed to somebody else")


class TitoClient:
    """Talks to one server."""

    def __init__(
        self, base_url: str, *, token: str | None = None, timeout_s: float = 120.0, retries: int = 4
    ) -> None:
        """`token`: the admin token; None where the server runs without authentication."""
        self.base_url = base_url.rstrip("/")
        self._retries = retries
        headers = {"accept": "application/json"}
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        self._http = httpx.Client(base_url=self.base_url, headers=headers, timeout=timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def create(self, **options: Any) -> Session:
        """A new session; options as in POST /sessions, e.g. group_id, group_size, labels."""
        response = self._send("POST", "/sessions", json=options, repeat=False)
        id = response.json()["session_id"]
        return Session(self, id, response.headers.get("x-tito-session-key") or id)

    def session(self, id: str, key: str | None = None) -> Session:
        """A session that is there."""
        return Session(self, id, key or id)

    def export(
        self,
        path: str,
        *,
        format: str = "parquet",
        shape: str = "native",
        filters: Mapping[str, Any] | None = None,
        rules: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Export:
        """Ask for an export to a folder below TITO_EXPORT_URL."""
        body = {
            "path": path,
            "format": format,
            "shape": shape,
            "filters": dict(filters or {}),
            "rules": dict(rules or {}),
        }
        headers = {"idempotency-key": idempotency_key or uuid.uuid4().hex}
        return Export(self, self.call("POST", "/exports", json=body, headers=headers)["id"])

    def stream(
        self,
        *,
        shape: str = "native",
        consumer: str = "",
        lease_s: float = 300.0,
        rewarded: bool = False,
        min_weight_version: int | None = None,
        max_staleness: int | None = None,
        idle_s: float | None = None,
    ) -> Iterator[Group]:
        """Finished groups in the order in which they finished, one at a time; ends after `idle_s` without one
        (None: never).
        """
        query = {
            "shape": shape,
            "consumer": consumer or None,
            "lease_s": lease_s,
            "rewarded": str(rewarded).lower(),
            "min_weight_version": min_weight_version,
            "max_staleness": max_staleness,
        }
        given = {name: value for name, value in query.items() if value is not None}
        last = time.monotonic()
        while True:
            wait_s = 20.0 if idle_s is None else min(20.0, max(0.0, last + idle_s - time.monotonic()))
            groups = self._groups(given | {"wait_s": round(wait_s, 3)})
            yield from groups
            if groups:
                last = time.monotonic()
            elif idle_s is not None and time.monotonic() >= last + idle_s:
                return

    def _groups(self, query: Mapping[str, Any]) -> Sequence[Group]:
        # Not repeated: an answer that is lost on the way leaves its group leased until the lease runs out.
        answer = self.call("GET", "/samples/stream", params=query, repeat=False)
        return [Group(self, lease=answer["lease"], **_known(group)) for group in answer["groups"]]

    def call(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        repeat: bool = True,
    ) -> Json:
        """One call; its JSON answer ({} where it has none). Raises ServerError."""
        response = self._send(method, path, json=json, params=params, headers=headers, repeat=repeat)
        answer: Json = response.json() if response.content else {}
        return answer

    def _send(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        repeat: bool,
    ) -> httpx.Response:
        for attempt in range(self._retries + 1):
            last = attempt == self._retries or not repeat
            try:
                response = self._http.request(method, path, json=json, params=params, headers=headers)
            except httpx.TransportError:
                if last:
                    raise
            else:
                if response.status_code < 400:
                    return response
                if last or response.status_code not in _AGAIN:
                    raise _error(response)
            time.sleep(_PAUSES_S[min(attempt, len(_PAUSES_S) - 1)] * random.uniform(0.5, 1.0))
        raise AssertionError("the last attempt returns or raises")


def _known(group: Json) -> dict[str, Any]:
    """The fields of a group that this client knows; a newer server may send more."""
    return {name: group[name] for name in ("id", "unit", "group_id", "late", "deliveries", "rows")}


def _error(response: httpx.Response) -> ServerError:
    try:
        text = str(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        text = response.text[:500]
    return ServerError(response.status_code, response.headers.get("x-tito-error-code", ""), text)
