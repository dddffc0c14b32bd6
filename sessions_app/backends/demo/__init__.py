"""The demo engine: a process of its own that speaks the engines' protocols without a model. A tool for people
who try the product, and for its tests; nothing on the serving path imports it."""
