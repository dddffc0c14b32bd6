"""A module of hooks that ends the process that imports it, or would."""

raise SystemExit("this module leaves")
