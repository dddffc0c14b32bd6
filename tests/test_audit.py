"""The audit of dependencies fails on a finding and never passes off silence as one that found nothing."""

import json
import subprocess
from types import SimpleNamespace

import pytest

from tests import audit

CLEAN = {"name": "a", "version": "1", "vulns": []}
HOLE = {"name": "b", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"]}]}
SKIPPED = {"name": "c", "skip_reason": "Dependency not found"}


def test_a_finding_fails_and_is_named() -> None:
    verdict = audit.verdict_of([CLEAN, HOLE, SKIPPED])
    assert verdict.status == 1
    assert "b 2: PYSEC-1, fixed in 3" in verdict.text


def test_what_was_not_asked_is_said() -> None:
    assert audit.verdict_of([CLEAN]).text == "no known hole in 1 dependencies"
    assert "1 COULD NOT BE ASKED" in audit.verdict_of([CLEAN, SKIPPED]).text
    nothing = audit.verdict_of([SKIPPED])
    assert nothing.status == 0
    assert "NOT AUDITED" in nothing.text


def answers(monkeypatch: pytest.MonkeyPatch, by_service: dict[str, object]) -> None:
    def run(command: list[str], **_: object) -> SimpleNamespace:
        told = by_service[command[-1]]
        if isinstance(told, Exception):
            raise told
        return SimpleNamespace(stdout=told)

    monkeypatch.setattr(audit, "find_spec", lambda _: object())
    monkeypatch.setattr(audit.subprocess, "run", run)


def test_the_second_database_is_asked_where_the_first_knows_nothing(monkeypatch) -> None:
    first, second = json.dumps({"dependencies": [SKIPPED]}), json.dumps({"dependencies": [HOLE]})
    answers(monkeypatch, {"pypi": first, "osv": second})
    assert audit.audited().status == 1


@pytest.mark.parametrize("silence", ["", "Traceback", "{}", subprocess.TimeoutExpired("pip-audit", 1)])
def test_without_a_network_the_audit_is_loud_and_no_failure(monkeypatch, silence: object) -> None:
    answers(monkeypatch, {"pypi": silence, "osv": silence})
    assert audit.audited().status == 0
    assert "NOT AUDITED" in audit.audited().text
