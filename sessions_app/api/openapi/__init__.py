"""The OpenAPI description at /schema/.

inspection  what a view is to drf-spectacular
operations  bodies, queries and replies by view and method
components  the shapes they name
view        the document
"""
