"""Who looked at which session's text in the operator screens."""

from django.db import models


class DataRead(models.Model):
    """Reads of one kind by one person within an hour, counted. Survives the session and the account."""

    session_id = models.UUIDField()
    username = models.CharField(max_length=150)
    what = models.CharField(max_length=60, help_text="Page or list")
    hour = models.DateTimeField(help_text="Beginning of the hour")
    reads = models.IntegerField(default=1)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["id"], name="data_read_id"),
            models.Index(fields=["last_at"], name="data_read_last"),
            models.Index(fields=["username", "last_at"], name="data_read_by"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["session_id", "username", "what", "hour"], name="data_read_pk")
        ]

    def __str__(self) -> str:
        return f"{self.username}: {self.what} of {self.session_id.hex}"
