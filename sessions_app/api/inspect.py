"""GET /api/…: sessions, nodes, records and events for people and scripts, page by page. Admin only."""

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from sessions_app import errors
from sessions_app.api import access, reading, runtime
from sessions_app.api.direct import DirectView, json_response
from sessions_app.api.runtime import Runtime
from sessions_app.store import attach, inspect, read
from sessions_app.store.inspect import SessionFilter, SessionRow
from sessions_app.store.read import Healer
from sessions_app.turns import reading as stored

_DEFAULT_PAGE, _LARGEST_PAGE = 100, 1000
_SEQ, _WHOLE_NUMBER = re.compile(r"[0-9]{1,9}"), re.compile(r"-?[0-9]{1,18}")
_FILTERS = ("id_prefix", "status", "harness", "rollout_id", "group_id", "profile", "history_policy")


class InspectView(DirectView):
    """Common to all: admin only."""

    http_method_names = ["get"]

    def state_for(self, request: Request) -> Runtime:
        """The runtime, if the caller is an admin."""
        state = runtime.current()
        access.require_admin(state, request)
        return state


class SessionListView(InspectView):
    """GET /api/sessions."""

    async def get(self, request: Request) -> HttpResponseBase:
        """Sessions, newest first; `next` is the cursor of the following page."""
        state = self.state_for(request)
        limit = page_size(request)
        rows = await inspect.list_sessions(state.db, session_filter(request), limit)
        cursor = rows[-1].created_at.isoformat() if len(rows) == limit else None
        return json_response({"sessions": [session_json(row) for row in rows], "next": cursor})


class SessionDetailView(InspectView):
    """GET /api/sessions/{id}."""

    async def get(self, request: Request, session_id: str) -> HttpResponseBase:
        """Settings, lifecycle, counters, and events by kind and cause."""
        state = self.state_for(request)
        row = await known_session(state, session_id)
        events = await inspect.count_events(state.db, row.id)
        return json_response({**session_json(row), "events": events})


class PageView(InspectView):
    """A page of what belongs to a session."""

    name: str
    key: str
    """Field of a row that is the cursor."""
    load: Callable[..., Any]

    async def get(self, request: Request, session_id: str) -> HttpResponseBase:
        """The rows behind `after`."""
        state = self.state_for(request)
        row = await known_session(state, session_id)
        limit = page_size(request)
        rows = await type(self).load(state.db, row.id, whole_number(request, "after", -1), limit)
        cursor = getattr(rows[-1], self.key) if len(rows) == limit else None
        return json_response({self.name: [asdict(one) for one in rows], "next": cursor})


class NodesView(PageView):
    """GET /api/sessions/{id}/nodes."""

    name, key, load = "nodes", "seq", staticmethod(inspect.list_nodes)


class RecordsView(PageView):
    """GET /api/sessions/{id}/records: every request, also those that reached no tree."""

    name, key, load = "records", "id", staticmethod(inspect.list_records)


class EventsView(PageView):
    """GET /api/sessions/{id}/events."""

    name, key, load = "events", "id", staticmethod(inspect.list_events)


class NodeView(InspectView):
    """GET /api/nodes/{session}:{seq}; `?include=tokens,logprobs`."""

    async def get(self, request: Request, node_id: str) -> HttpResponseBase:
        """A node with the messages it added and, when asked for, its ids."""
        state = self.state_for(request)
        session, _, seq_text = node_id.partition(":")
        row = await known_session(state, session)
        if not _SEQ.fullmatch(seq_text):
            raise errors.NotFound(f"node not found: {node_id}")
        found = await inspect.list_nodes(state.db, row.id, int(seq_text) - 1, 1)
        if not found or found[0].seq != int(seq_text):
            raise errors.NotFound(f"node not found: {node_id}")
        included = set(request.query_params.get("include", "").split(","))
        return json_response(await _node_json(state, row.id, found[0], included))


async def _node_json(
    state: Runtime, session_id: UUID, node: inspect.NodeSummary, included: set[str]
) -> dict[str, Any]:
    messages = await attach.load_messages(state.db, session_id, [node.seq])
    body = {**asdict(node), "messages": stored.stored_messages(messages)}
    if included & {"tokens", "logprobs"}:
        turn = await read.load_turn(state.db, session_id, node.seq)
        assert turn is not None
        body["tokens"] = {
            "boundary_trim": turn.boundary_trim,
            "prompt_delta": turn.prompt_delta,
            "completion": turn.completion,
        }
        if "logprobs" in included:
            body["tokens"]["logprobs"] = turn.logprobs
    return body


async def known_session(state: Runtime, session_id: str) -> SessionRow:
    """A session by its id, deleted or not. Raises SessionNotFound."""
    row = await inspect.load_session(state.db, access.parse_session_id(session_id))
    if row is None:
        raise errors.SessionNotFound(session_id)
    return row


def session_json(row: SessionRow) -> dict[str, Any]:
    """A session's row as JSON."""
    body = asdict(row)
    healer = Healer(row.healed_turns, row.healed_prefix_tokens, row.nonlinear, row.close_unresolved)
    return {
        **body,
        "id": row.id.hex,
        "labels": json.loads(row.labels),
        "sampling": json.loads(row.sampling),
        "turns": row.next_seq,
        "metadata": {"linear_healer": reading.healer_json(healer)},
    }


def session_filter(request: Request) -> SessionFilter:
    """The filter of a list's query. Raises InvalidArgument naming the parameter."""
    given = {name: request.query_params[name] for name in _FILTERS if name in request.query_params}
    odd = next((name for name, value in given.items() if "\x00" in value), None)
    if odd is not None:
        raise errors.InvalidArgument(f"{odd} must be text without NUL")
    before = request.query_params.get("cursor")
    try:
        return SessionFilter(before=datetime.fromisoformat(before) if before else None, **given)
    except ValueError:
        raise errors.InvalidArgument("cursor must be the `next` of a page before") from None


def page_size(request: Request) -> int:
    """`limit`, 1 to 1000."""
    limit = whole_number(request, "limit", _DEFAULT_PAGE)
    if not 1 <= limit <= _LARGEST_PAGE:
        raise errors.InvalidArgument(f"limit must be 1 to {_LARGEST_PAGE}")
    return limit


def whole_number(request: Request, name: str, default: int) -> int:
    """A whole number of the query."""
    value = request.query_params.get(name)
    if value is None:
        return default
    if not _WHOLE_NUMBER.fullmatch(value):
        raise errors.InvalidArgument(f"{name} must be a whole number")
    return int(value)
