"""Export jobs over HTTP: ask for one, look at it, cancel it, resume it. Admin only.

A request names a folder below TITO_EXPORT_URL and registered hooks; never a URL, never code.
"""

import asyncio
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid4, uuid5

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from sessions_app import errors
from sessions_app.api import access, runtime
from sessions_app.api.direct import DirectView, body_of, json_response
from sessions_app.api.runtime import Runtime
from trainer_export.arguments import Arguments
from trainer_export.jobs import job as jobs
from trainer_export.jobs.copying import copy_job
from trainer_export.jobs.job import Job
from trainer_export.jobs.report import differences
from trainer_export.jobs.request import below, read_request
from trainer_export.jobs.showing import job_json, shards_json
from trainer_export.tasks import send_workers

_PAGE, _LARGEST_PAGE = 50, 500


def admin_runtime(request: Request) -> Runtime:
    """The runtime, if the caller is an admin."""
    state = runtime.current()
    access.require_admin(state, request)
    return state


async def job_of(state: Runtime, job_id: str) -> Job:
    """The job of a URL. Raises NotFound."""
    try:
        job = await jobs.load(state.db, UUID(job_id))
    except ValueError:
        job = None
    if job is None:
        raise errors.NotFound(f"export not found: {job_id[:40]}")
    return job


class ExportsView(DirectView):
    """POST and GET /exports."""

    http_method_names = ["get", "post"]

    async def post(self, request: Request) -> HttpResponseBase:
        """Ask for an export; the same Idempotency-Key asks for the same one."""
        state = admin_runtime(request)
        job_id, created = await self._create(state, request, Arguments.of_body(body_of(request)))
        queued = await asyncio.to_thread(send_workers, job_id.hex) if created else True
        job = await job_of(state, job_id.hex)
        return json_response(job_json(job) | {"queued": queued}, 201 if created else 200)

    async def _create(self, state: Runtime, request: Request, asked: Arguments) -> tuple[UUID, bool]:
        if asked.given("rerun_of"):
            asked.refuse_unknown(("rerun_of", "path"))
            source = await job_of(state, asked.text("rerun_of") or "")
            destination = below(state.configuration.export_url, asked.text("path"))
            return await copy_job(state.db, source.id, destination, "api"), True
        wanted = read_request(asked, state.configuration)
        key = request.headers.get("idempotency-key")
        job_id = uuid5(NAMESPACE_URL, f"tito:export:{key}") if key else uuid4()
        created = await jobs.create(state.db, wanted, "api", job_id)
        if created is None:
            await self._check_same(state, job_id, wanted)
        return job_id, created is not None

    async def _check_same(self, state: Runtime, job_id: UUID, wanted: Any) -> None:
        known = await job_of(state, job_id.hex)
        same = (known.destination, known.format, known.shape, known.filters, known.rules)
        if same != (wanted.destination, wanted.format, wanted.shape, wanted.filters, wanted.rules):
            raise errors.IdempotencyConflict("this Idempotency-Key was used for another export")

    async def get(self, request: Request) -> HttpResponseBase:
        """Jobs, newest first; `before` (a created_at) pages on."""
        state = admin_runtime(request)
        query = Arguments(dict(request.query_params.items()))
        found = await jobs.newest(state.db, _limit(query), _moment(query))
        following = found[-1].created_at if len(found) == _limit(query) else None
        return json_response(
            {
                "exports": [job_json(job) for job in found],
                "before": following.isoformat() if following else None,
            }
        )


def _limit(query: Arguments) -> int:
    text = query.text("limit")
    if text is None:
        return _PAGE
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:9]) <= _LARGEST_PAGE:
        raise errors.InvalidArgument(f"limit must be a whole number from 1 to {_LARGEST_PAGE}")
    return int(text)


def _moment(query: Arguments) -> datetime | None:
    text = query.text("before")
    try:
        return datetime.fromisoformat(text.replace(" ", "+")) if text else None  # an unquoted +
    except ValueError:
        raise errors.InvalidArgument("before must be a time as in created_at") from None


class ExportView(DirectView):
    """GET /exports/{id}."""

    http_method_names = ["get"]

    async def get(self, request: Request, job_id: str) -> HttpResponseBase:
        """A job with its shards and its report; `diff` names a job to compare reports with."""
        state = admin_runtime(request)
        job = await job_of(state, job_id)
        shown = job_json(job) | {"shards": await shards_json(state.db, job), "report": job.report}
        other = request.query_params.get("diff")
        if other is not None:
            shown["diff"] = differences(job.report, (await job_of(state, other)).report)
        return json_response(shown)


class ExportCancelView(DirectView):
    """POST /exports/{id}/cancel."""

    http_method_names = ["post"]

    async def post(self, request: Request, job_id: str) -> HttpResponseBase:
        """Nothing of it becomes visible; workers take away what was written."""
        state = admin_runtime(request)
        job = await job_of(state, job_id)
        if not await jobs.cancel(state.db, job.id):
            raise errors.Conflict(f"export is {job.state}: it cannot be cancelled")
        await jobs.end_if_due(state.db, job.id)
        await asyncio.to_thread(send_workers, job.id.hex)
        return json_response(job_json(await job_of(state, job_id)))


class ExportResumeView(DirectView):
    """POST /exports/{id}/resume."""

    http_method_names = ["post"]

    async def post(self, request: Request, job_id: str) -> HttpResponseBase:
        """Go on with a failed or cancelled job where it stood."""
        state = admin_runtime(request)
        job = await job_of(state, job_id)
        if not await jobs.resume(state.db, job.id):
            raise errors.Conflict(f"export is {job.state}: there is nothing to resume")
        queued = await asyncio.to_thread(send_workers, job.id.hex)
        return json_response(job_json(await job_of(state, job_id)) | {"queued": queued})
