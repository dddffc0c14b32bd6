"""The screens in a real browser: clicked through, read by keyboard, compared with their JSON twins."""

import json
import os
import re
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection
from django.utils import timezone

from sessions_app.api.wiring import conninfo
from sessions_app.insight.store_reads import ORM, settled
from sessions_app.insight.what_if.wanted import wanted_of
from sessions_app.models import WhatIfJob
from sessions_app.tasks import what_if
from tests.admin import browser as machine
from tests.admin.browser import CONTRAST, picture
from tests.admin.seeding import Seeds, Server
from tests.admin.test_pages import node_url, session_url
from trainer_export.jobs import job as export_jobs
from trainer_export.jobs.filters import Filters
from trainer_export.jobs.request import ExportRequest, ExportRules
from trainer_export.jobs.running import look_at
from trainer_export.renderers import profile_renderer

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(machine.missing() is not None, reason=str(machine.missing())),
]

HEALTH = "/admin/sessions_app/session/health/"
EXPORTS = (uuid.uuid4().hex, uuid.uuid4().hex)
"""Two finished exports, the second of fewer sessions."""
REPLAY = uuid.uuid4().hex
"""A replay that has ended."""
SCREENS = {
    "sessions": lambda seeds: "/admin/sessions_app/session/",
    "session": lambda seeds: session_url(seeds.busy),
    "node": lambda seeds: node_url(seeds.busy, 3),
    "ids": lambda seeds: node_url(seeds.busy, 10) + "?signal=logprob#tokens",
    "odd": lambda seeds: node_url(seeds.odd, 0),
    "lanes": lambda seeds: node_url(seeds.busy, 10) + "diff/",
    "compare": lambda seeds: f"/admin/sessions_app/session/compare/?a={seeds.busy}:1&b={seeds.busy}:2",
    "samples": lambda seeds: f"/admin/sessions_app/session/{seeds.busy}/samples/",
    "health": lambda seeds: f"{HEALTH}?range=1h&split=harness",
    "what-if": lambda seeds: "/admin/sessions_app/session/what-if/",
    "exports": lambda seeds: "/admin/trainer_export/exportjob/",
    "export": lambda seeds: f"/admin/trainer_export/exportjob/{EXPORTS[1]}/change/",
    "export-diff": lambda seeds: f"/admin/trainer_export/exportjob/diff/?a={EXPORTS[0]}&b={EXPORTS[1]}",
    "rewards": lambda seeds: f"/admin/sessions_app/session/{seeds.long}/rewards/",
    "replay": lambda seeds: f"/admin/sessions_app/session/what-if/{REPLAY}/",
    "records": lambda seeds: "/admin/sessions_app/record/",
    "question": lambda seeds: f"/admin/sessions_app/session/{seeds.plain}/do/close/",
}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """One browser for all tests. Playwright's loop runs in this thread, beside Django's synchronous calls."""
    from playwright.sync_api import sync_playwright

    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    try:
        with sync_playwright() as playwright:
            launched = playwright.chromium.launch(
                executable_path=machine.CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
            )
            yield launched
            launched.close()
            connection.close()  # while Playwright's loop runs, Django keeps a connection of its own for it
    finally:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="module")
def shown(seeded: tuple[Server, Seeds], django_db_blocker, tmp_path_factory) -> None:
    """Exports, rewards and a replay, committed for the server to see, before Playwright's loop runs."""
    server, seeds = seeded
    with django_db_blocker.unblock():
        reported(server, seeds.long)
        destination = tmp_path_factory.mktemp("exports")
        for name, sessions in zip(EXPORTS, ([seeds.long, seeds.rolled], [seeds.long]), strict=True):
            filters = Filters(sessions=sessions)
            wanted = ExportRequest(
                f"{destination}/{name}", "jsonl", filters=filters, rules=ExportRules(picker="keep_all")
            )
            settled(export_jobs.create(ORM, wanted, "admin", uuid.UUID(name)))
            worked_on(uuid.UUID(name))
        asked = wanted_of({"matcher": "loose_tool_call", "sessions": [seeds.busy], "renders": "1"})
        WhatIfJob.objects.create(
            pk=uuid.UUID(REPLAY), wanted=json.dumps(asked.as_json()), created_at=timezone.now()
        )
        what_if(REPLAY)


def worked_on(job: uuid.UUID) -> None:
    """What a worker does with an export."""
    look_at(conninfo(), settings.TITO, profile_renderer, job, call_help=lambda _: None)


def reported(server: Server, session: str) -> None:
    """Rewards of the session, of a leaf and of a turn that was continued."""
    for reward in ({"value": 1.0}, {"value": 0.5, "node": 1, "name": "tests"}, {"value": 0.1, "node": 0}):
        assert server.post(f"/sessions/{session}/rewards", reward)[0] == 200


@pytest.fixture(scope="module")
def cookie(seeded: tuple[Server, Seeds], django_db_blocker) -> str:
    """A signed-in administrator; stays in the database, as the server's own process has to see it."""
    with django_db_blocker.unblock():
        user, _ = User.objects.get_or_create(username="browser", is_staff=True, is_superuser=True)
        store = SessionStore()
        store[SESSION_KEY] = str(user.pk)
        store[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
        store[HASH_SESSION_KEY] = user.get_session_auth_hash()
        store.create()
        return str(store.session_key)


class Visit:
    """A window of the browser, and what went wrong in it."""

    def __init__(self, context: Any, base: str) -> None:
        self.page = context.new_page()
        self.base = base
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)

    def go(self, url: str) -> Any:
        """Open a screen."""
        self.page.goto(self.base + url, wait_until="load")
        return self.page

    def twin(self, url: str) -> Any:
        """The JSON twin of an address."""
        address = url + ("&" if "?" in url else "?") + "format=json"
        return json.loads(self.page.request.get(self.base + address).body())


@pytest.fixture
def visit(
    seeded: tuple[Server, Seeds], shown: None, chromium: Any, cookie: str, request: pytest.FixtureRequest
) -> Iterator[Visit]:
    """A fresh window, light unless a test asks for dark; scripts must not have failed when it closes."""
    theme = getattr(request, "param", "light")
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, color_scheme=theme)
    context.add_cookies([{"name": "sessionid", "value": cookie, "url": seeded[0].url}])
    window = Visit(context, seeded[0].url)
    yield window
    context.close()
    assert window.errors == []


@pytest.mark.parametrize("visit", ["light", "dark"], indirect=True)
@pytest.mark.parametrize("name", SCREENS)
def test_every_screen_is_readable_in_both_themes(visit: Visit, seeds: Seeds, name: str) -> None:
    page = visit.go(SCREENS[name](seeds))
    theme = "dark" if page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") else "light"
    assert page.evaluate("document.documentElement.classList.contains('dark')") == (theme == "dark")
    if (file := picture(f"{name}-{theme}")) is not None:
        page.screenshot(path=str(file))
    assert page.evaluate(CONTRAST) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert page.title()


def test_lists_are_usable_on_a_phone(visit: Visit, seeds: Seeds) -> None:
    visit.page.set_viewport_size({"width": 390, "height": 800})
    page = visit.go("/admin/sessions_app/session/")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page = visit.go(f"/admin/sessions_app/session/?q={seeds.busy[:10]}")
    page.locator("a", has_text=seeds.busy[:12]).first.click()
    page.wait_for_url(f"**{session_url(seeds.busy)}*")


@pytest.mark.parametrize("name", ["session", "node", "what-if", "rewards", "health", "export"])
def test_no_screen_is_wider_than_a_phone(visit: Visit, seeds: Seeds, name: str) -> None:
    visit.page.set_viewport_size({"width": 390, "height": 800})
    assert visit.go(SCREENS[name](seeds)).evaluate("document.documentElement.scrollWidth") <= 390


def test_from_the_list_to_the_reason_of_a_fork(visit: Visit, seeds: Seeds) -> None:
    page = visit.go(f"/admin/sessions_app/session/?q={seeds.busy[:10]}")
    page.locator("a", has_text=seeds.busy[:12]).first.click()
    page.wait_for_url(f"**{session_url(seeds.busy)}*")
    events = visit.twin(session_url(seeds.busy))["events"]
    event = next(one for one in events if one["cause"] == "tool_arguments_spelling")
    page.locator("svg.lineage a", has_text=re.compile(rf"^node {event['node']}:")).first.click()
    page.wait_for_url(f"**{node_url(seeds.busy, event['node'])}")
    card = page.locator(".t-card")
    assert "loose_tool_call" in card.inner_text()
    assert event["field"] in card.inner_text()


def test_the_page_says_what_its_twin_says(visit: Visit, seeds: Seeds) -> None:
    page = visit.go(session_url(seeds.busy))
    value = visit.twin(session_url(seeds.busy))
    facts = page.locator(".t-facts").first.inner_text()
    assert str(value["facts"]["turns"]) in facts
    assert f"{value['facts']['leaves']} leaves" in facts
    rows = page.locator("section[aria-labelledby=turns] tbody tr")
    assert rows.count() == len(value["turns"]["lines"])
    assert page.locator("svg.lineage a").count() == len(value["picture"]["marks"])


def test_signals_are_switched_and_stand_in_the_address(visit: Visit, seeds: Seeds) -> None:
    page = visit.go(node_url(seeds.plain, 2) + "?at=0")
    for signal in ("mask", "logprob", "version", "owner", "text"):
        page.locator(f"a[data-signal={signal}]").click()
        assert page.locator(".tokens").get_attribute("data-signal") == signal
        assert f"signal={signal}" in page.url
    page.reload(wait_until="networkidle")
    assert page.locator("a.t-on[data-signal=text]").count() == 1


def test_ids_are_read_by_keyboard(visit: Visit, seeds: Seeds) -> None:
    page = visit.go(node_url(seeds.plain, 2))
    page.locator(".tokens").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    cells = visit.twin(node_url(seeds.plain, 2))["tokens"]["cells"]
    told = page.evaluate("document.querySelector('.t-told').value")
    assert f"id {cells[1]['id']}" in told
    assert f"#{cells[1]['index']} " in told


def test_scrolling_loads_what_comes_next_and_drops_what_is_far(visit: Visit, seeds: Seeds) -> None:
    page = visit.go(node_url(seeds.long, 11) + "?at=0")
    last = int(page.locator(".stretch").first.get_attribute("data-last"))
    assert last > 8 * 512
    for _ in range(60):
        page.evaluate("document.querySelector('.tokens').scrollTop = 10 ** 9")
        page.wait_for_timeout(60)
        if page.locator(f".stretch[data-stop='{last}']").count():
            break
    assert page.locator(f".stretch[data-stop='{last}']").count() == 1
    assert page.locator(".stretch").count() <= 6
    starts = [int(one.get_attribute("data-start")) for one in page.locator(".stretch").all()]
    stops = [int(one.get_attribute("data-stop")) for one in page.locator(".stretch").all()]
    assert starts[1:] == stops[:-1]
    for _ in range(60):
        page.evaluate("document.querySelector('.tokens').scrollTop = 0")
        page.wait_for_timeout(60)
        if page.locator(".stretch[data-start='0']").count():
            break
    assert page.locator(".stretch[data-start='0']").count() == 1


def test_odd_content_does_nothing(visit: Visit, seeds: Seeds) -> None:
    pages = (session_url(seeds.odd), node_url(seeds.odd, 0), node_url(seeds.odd, 2))
    for url in (*pages, "/admin/sessions_app/session/"):
        page = visit.go(url)
        assert page.title() != "broken"
        assert page.locator(".tito script, .tito img").count() == 0


def test_parts_are_refreshed_without_losing_the_place(visit: Visit, seeded: tuple[Server, Seeds]) -> None:
    talk = seeded[0].session(harness="live")
    reply = talk.turn([{"role": "user", "content": "one"}], "first")
    page = visit.go(session_url(talk.id))
    page.locator("[data-live-switch]").check()
    assert "live=on" in page.url
    talk.turn([{"role": "user", "content": "one"}, reply, {"role": "user", "content": "two"}], "second")
    page.locator("#n1").wait_for(timeout=15_000)
    assert page.locator("section[aria-labelledby=turns] tbody tr").count() == 2


def test_a_point_of_a_chart_leads_to_its_sessions(visit: Visit, seeds: Seeds) -> None:
    page = visit.go(f"{HEALTH}?range=1h&split=harness")
    page.locator("#rollback tbody tr", has_text="linear-agent").get_by_role("link").click()
    page.wait_for_url("**/health/sessions/**")
    assert seeds.rolled in page.content()


def test_a_replay_is_asked_for_with_the_form(visit: Visit, seeds: Seeds) -> None:
    page = visit.go(session_url(seeds.busy))
    page.get_by_role("link", name="What if", exact=True).last.click()
    assert page.locator("textarea[name=sessions]").input_value() == seeds.busy
    page.locator("select[name=matcher]").select_option("loose_tool_call")
    page.get_by_role("button", name="Replay").click()
    page.wait_for_url(re.compile(r"what-if/[0-9a-f]{32}/"))
    assert "pending" in page.content()


def test_an_export_is_run_again_to_the_same_bytes(visit: Visit) -> None:
    page = visit.go(SCREENS["export"](None))
    digests = page.locator("td code", has_text=re.compile("^[0-9a-f]{64}$")).all_inner_texts()
    page.get_by_role("link", name="Run again").click()
    page.get_by_role("button", name="Run again").click()
    page.wait_for_url(re.compile("/change/$"))
    said = page.get_by_text(re.compile("ran the export again as [0-9a-f]{32}")).first.inner_text()
    copy = re.search("[0-9a-f]{32}", said.partition(" as ")[2])
    assert copy is not None
    with ThreadPoolExecutor(1) as apart:  # Playwright's loop runs in this thread
        apart.submit(worked_on, uuid.UUID(copy.group())).result()
    page = visit.go(f"/admin/trainer_export/exportjob/{copy.group()}/change/")
    assert digests
    assert page.locator("td code", has_text=re.compile("^[0-9a-f]{64}$")).all_inner_texts() == digests


def test_filters_are_opened_by_keyboard(visit: Visit, seeds: Seeds) -> None:
    page = visit.go("/admin/sessions_app/session/")
    choice = page.get_by_text("rolled back")
    assert not choice.is_visible()
    page.get_by_role("button", name="Filters").focus()
    page.keyboard.press("Enter")
    choice.wait_for(state="visible")


def test_everything_is_reached_by_keyboard(visit: Visit, seeds: Seeds) -> None:
    page = visit.go(session_url(seeds.plain))
    seen = set()
    for _ in range(120):
        page.keyboard.press("Tab")
        seen.add(
            page.evaluate("document.activeElement.getAttribute('href') || document.activeElement.tagName")
        )
    assert node_url(seeds.plain, 0) in seen
    assert any("do/close" in one for one in seen)
