"""A served model: tokenizer, template, renderer, engine. A reference table, copied to every shard."""

from django.db import models


class ModelProfile(models.Model):
    """What sessions name by `profile`. The row `default` mirrors the environment at each start."""

    name = models.CharField(max_length=100, unique=True)
    model = models.TextField(
        blank=True, default="", help_text="Tokenizer folder or hub name; empty: the demo tokenizer"
    )
    chat_template = models.TextField(
        blank=True, default="", help_text="Template file; empty: the tokenizer's own"
    )
    chat_template_kwargs = models.TextField(default="{}", help_text="JSON object given to the template")
    renderer = models.CharField(max_length=100, default="auto")
    tool_parser = models.CharField(
        max_length=100, blank=True, default="", help_text="Empty: the renderer's family's, else qwen3"
    )
    reasoning_parser = models.CharField(
        max_length=100, blank=True, default="", help_text="Empty: the renderer's family's, else think"
    )
    backend = models.CharField(max_length=50, default="demo")
    backend_url = models.TextField(
        blank=True, default="", help_text="One or more engine URLs, comma-separated"
    )
    weight_version = models.TextField(
        null=True, blank=True, help_text="Weights the engine is said to hold; recorded with each dispatch"
    )
    paused = models.BooleanField(default=False, help_text="New generations are held for a weight update")
    pinned = models.TextField(
        blank=True,
        default="",
        help_text="Columns set by the environment, comma-separated; they win at each start",
    )
    verification_key = models.CharField(
        max_length=64,
        blank=True,
        default="",
        help_text="Renderer and parsers that were verified",
    )
    verification = models.TextField(
        default="[]",
        help_text="JSON list: the rows of verify_renderer's table",
    )
    verified_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
