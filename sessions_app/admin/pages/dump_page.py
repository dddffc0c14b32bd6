"""A session as a dump file, as `manage.py session_load` reads it."""

from django.http import HttpRequest, HttpResponse

from sessions_app.admin.pages.serving import page, read_session
from sessions_app.api.wiring import conninfo
from trainer_export.dumps.writing import dump
from trainer_export.jobs.running import on_loop


@page
def dump_page(request: HttpRequest, session_id: str) -> HttpResponse:
    """The download."""
    session = read_session(request, session_id, "dump")
    data = on_loop(conninfo(), lambda db: dump(db, session.id))
    reply = HttpResponse(data, content_type="application/gzip")
    reply["Content-Disposition"] = f'attachment; filename="{session.id.hex}.tito.gz"'
    return reply
