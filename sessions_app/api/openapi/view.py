"""GET /schema/: the OpenAPI document, as JSON unless YAML is asked for."""

from typing import Any

from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import (
    OpenApiJsonRenderer,
    OpenApiJsonRenderer2,
    OpenApiYamlRenderer,
    OpenApiYamlRenderer2,
)
from drf_spectacular.views import SpectacularAPIView

from sessions_app.api.openapi.components import COMPONENTS

_KEYS: dict[str, Any] = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "apiKey": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
}


class DocumentGenerator(SchemaGenerator):
    """Adds the named shapes."""

    def get_schema(self, request: Any = None, public: bool = False) -> Any:
        """The whole document."""
        document = super().get_schema(request, public)
        document["openapi"] = "3.1.0"
        components = document.setdefault("components", {})
        components["schemas"] = {**components.get("schemas", {}), **COMPONENTS}
        components["securitySchemes"] = _KEYS
        return document


class DocumentView(SpectacularAPIView):
    """The OpenAPI document of this server."""

    generator_class = DocumentGenerator
    renderer_classes = [OpenApiJsonRenderer2, OpenApiJsonRenderer, OpenApiYamlRenderer, OpenApiYamlRenderer2]
