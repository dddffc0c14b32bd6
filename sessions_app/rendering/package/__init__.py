"""The hand-written families of the package `renderers`, behind our own Renderer protocol."""
