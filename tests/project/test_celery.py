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
