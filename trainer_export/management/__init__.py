"""Management of exports from the command line."""
