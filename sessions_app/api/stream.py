"""GET /samples/stream, POST /samples/ack: finished rollout groups for asynchronous trainers. Admin only."""

from dataclasses import asdict
from uuid import UUID

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from sessions_app import errors
from sessions_app.api.direct import DirectView, body_of, bytes_response, json_response
from sessions_app.api.exports import admin_runtime
from trainer_export.arguments import Arguments
from trainer_export.stream import leases
from trainer_export.stream.serving import StreamRequest

_MOST = 1000


class SamplesStreamView(DirectView):
    """GET /samples/stream."""

    http_method_names = ["get"]

    async def get(self, request: Request) -> HttpResponseBase:
        """The next groups, leased to the caller."""
        state = admin_runtime(request)
        wanted = StreamRequest.of({name: str(text) for name, text in request.query_params.items()})
        return bytes_response(await state.stream.answer(wanted))


class SamplesAckView(DirectView):
    """POST /samples/ack."""

    http_method_names = ["post"]

    async def post(self, request: Request) -> HttpResponseBase:
        """`{lease, ids}`: trained on, never handed out again; with `release`: handed out to the next."""
        state = admin_runtime(request)
        said = Arguments.of_body(body_of(request))
        said.refuse_unknown(("lease", "ids", "release"))
        lease, ids = _lease(said), _ids(said)
        settle = leases.give_back if said.flag("release") else leases.acknowledge
        return json_response(asdict(await settle(state.db, lease, ids)))


def _lease(said: Arguments) -> UUID:
    try:
        return UUID(said.text("lease") or "")
    except ValueError:
        raise errors.InvalidArgument("lease must be the one that the groups came with") from None


def _ids(said: Arguments) -> list[int]:
    ids = said.any("ids")
    if (
        not isinstance(ids, list)
        or not 0 < len(ids) <= _MOST
        or not all(isinstance(one, int) and not isinstance(one, bool) and 0 <= one < 2**63 for one in ids)
    ):
        raise errors.InvalidArgument(f"ids must be a list of 1 to {_MOST} ids of groups")
    return ids
