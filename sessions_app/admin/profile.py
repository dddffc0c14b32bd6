"""Model profiles: editable, but for what the environment pins."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import Field, Model
from django.http import HttpRequest
from django.utils.safestring import SafeString

from sessions_app.admin.base import OperatorAdmin
from sessions_app.api.wiring import configured, renderer_of
from sessions_app.backends.destinations import check_engine_url
from sessions_app.errors import InvalidJson
from sessions_app.json_text import loads
from sessions_app.models import ModelProfile
from sessions_app.presentation.markup import json_block
from tito_project.configuration import BACKENDS

_IDENTITY = ("name",)
_RENDERING = ("model", "chat_template", "chat_template_kwargs", "renderer", "tool_parser", "reasoning_parser")
_ENGINE = ("backend", "backend_url")
_WEIGHTS = ("weight_version", "paused")
_VERIFIED = ("verified_at", "verification_shown")
_SINCE = ("created_at", "updated_at")


def pinned_columns(profile: ModelProfile | None) -> tuple[str, ...]:
    """Columns that the environment sets."""
    return tuple(name for name in profile.pinned.split(",") if name) if profile else ()


class ProfileForm(forms.ModelForm):
    """Refuses what no process could load."""

    class Meta:
        model = ModelProfile
        fields = (*_IDENTITY, *_RENDERING, *_ENGINE)

    def clean_chat_template_kwargs(self) -> str:
        """A JSON object."""
        text = self.cleaned_data["chat_template_kwargs"]
        try:
            value = loads(text.encode("utf-8", "surrogatepass"))
        except InvalidJson as error:
            raise ValidationError(str(error)) from None
        if not isinstance(value, dict):
            raise ValidationError("must be a JSON object")
        return text

    def clean_backend(self) -> str:
        """One of the engines."""
        backend = self.cleaned_data["backend"]
        if backend not in BACKENDS:
            raise ValidationError(f"is not one of: {', '.join(BACKENDS)}")
        return backend

    def clean_backend_url(self) -> str:
        """URLs at which an engine can be."""
        urls = [url.strip() for url in self.cleaned_data["backend_url"].split(",") if url.strip()]
        for url in urls:
            try:
                check_engine_url(url, settings.TITO.engine_hosts)
            except ValueError as error:
                raise ValidationError(str(error)) from None
        return ",".join(urls)

    def clean(self) -> dict[str, Any]:
        """Loads the renderer, which may take seconds."""
        cleaned = super().clean() or self.cleaned_data
        if not self.errors and self._changes_rendering():
            trial = ModelProfile(**{**_columns(self.instance), **cleaned})
            try:
                renderer_of(configured(settings.TITO, trial))
            except ValueError as error:
                raise ValidationError(str(error)) from None
        return cleaned

    def _changes_rendering(self) -> bool:
        return not self.instance.pk or bool(set(_RENDERING) & set(self.changed_data))


def _columns(profile: ModelProfile) -> dict[str, Any]:
    return {name: getattr(profile, name) for name in (*_IDENTITY, *_RENDERING, *_ENGINE)}


@admin.register(ModelProfile)
class ModelProfileAdmin(OperatorAdmin):
    """Profiles are few; they are never deleted, because sessions name them."""

    form = ProfileForm
    list_display = (
        "name",
        "model_shown",
        "renderer",
        "backend",
        "backend_url",
        "weight_version",
        "paused_shown",
        "pinned",
    )
    list_filter = ("backend", "paused")
    search_fields = ("name",)
    search_help_text = "Name"
    fieldsets = (
        (None, {"fields": _IDENTITY}),
        ("Rendering", {"fields": _RENDERING}),
        ("Engine", {"fields": _ENGINE}),
        ("Weights", {"fields": _WEIGHTS}),
        ("Verified by verify_renderer", {"fields": _VERIFIED}),
        ("Since", {"fields": _SINCE}),
    )

    def formfield_for_dbfield(self, db_field: Field, request: HttpRequest, **options: Any) -> Any:
        """Names, addresses and files are a line, not a page."""
        field = super().formfield_for_dbfield(db_field, request, **options)
        if field is not None and isinstance(field.widget, forms.Textarea):
            field.widget.attrs["rows"] = 1
        return field

    @admin.display(description="model", ordering="model")
    def model_shown(self, profile: ModelProfile) -> str:
        """The tokenizer it names."""
        return profile.model or "demo tokenizer"

    @admin.display(description="paused", ordering="paused")
    def paused_shown(self, profile: ModelProfile) -> str:
        """Whether new generations wait, for a weight update."""
        return "yes" if profile.paused else "no"

    @admin.display(description="findings")
    def verification_shown(self, profile: ModelProfile) -> SafeString:
        """The table that the command printed."""
        return json_block(profile.verification)

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        """What the environment pins, the name that sessions know, the weights that `/admin-api` sets."""
        profile = obj if isinstance(obj, ModelProfile) else None
        named = _IDENTITY if profile else ()
        return (*named, *pinned_columns(profile), *_WEIGHTS, *_VERIFIED, *_SINCE)

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """Says which variables pin what."""
        profile = obj if isinstance(obj, ModelProfile) else None
        pinned = ", ".join(f"{name} (TITO_{name.upper()})" for name in pinned_columns(profile))
        if not pinned:
            return self.fieldsets
        told = f"Pinned by the environment, which wins at each start: {pinned}."
        return ((None, {"fields": _IDENTITY, "description": told}), *self.fieldsets[1:])

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody deletes: sessions name them."""
        return False

    def save_model(self, request: HttpRequest, obj: Model, form: forms.ModelForm, change: bool) -> None:
        """Processes read a profile once."""
        super().save_model(request, obj, form, change)
        messages.warning(
            request, "Web processes read a profile when they first serve it: restart them to apply this."
        )
