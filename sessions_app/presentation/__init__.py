"""How values look on the operator screens: markup, words, addresses. Knows no model and registers nothing."""
