"""Web processes that serve now, as far as the database can tell."""

from django.db import models


class ProcessLease(models.Model):
    """One web process. Renewed while it lives; one that has run out says that its process does not."""

    id = models.BigIntegerField(primary_key=True, help_text="Drawn by the process at its start")
    process = models.CharField(max_length=64, help_text="TITO_INSTANCE_ID; several may share one")
    host = models.TextField()
    pid = models.IntegerField()
    since = models.DateTimeField(help_text="Renewed in time ever since")
    renewed_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    class Meta:
        ordering = ["process", "id"]

    def __str__(self) -> str:
        return f"{self.process} ({self.host}, pid {self.pid})"
