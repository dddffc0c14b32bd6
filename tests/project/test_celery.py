"""The Celery application."""

from celery import current_app, shared_task
from django.conf import settings

from tito_project import celery_app


@shared_task(name="tests.look")
def look() -> None:
    """Does nothing."""


def test_tasks_of_any_process_go_to_our_broker() -> None:
    assert current_app.conf.broker_url == settings.CELERY_BROKER_URL
    result = look.apply_async(queue="tests")  # others' tasks wait in the usual queue
    assert result.id
    with celery_app.connection_for_read() as connection:
        message = connection.default_channel.basic_get("tests")
        assert message.headers["task"] == "tests.look"
        message.ack()


@shared_task(name="tests.quote")
def quote() -> None:
    """Fails over what somebody said."""
    raise ValueError("zebra-crossing")


@shared_task(name="tests.again", bind=True, max_retries=1)
def again(self) -> int:
    """Asks for a second try."""
    if not self.request.retries:
        raise self.retry(countdown=0)
    return 7


def test_the_error_of_a_task_is_logged_without_what_it_quotes(caplog) -> None:
    ended = quote.apply()
    assert ended.failed()
    assert "ValueError at " in caplog.text
    assert "test_celery.py:" in caplog.text
    assert "zebra" not in caplog.text
    assert again.apply().get() == 7
