"""The version of this tree: the newest heading of CHANGELOG.md, `.dev0` until it is released."""

VERSION = "0.3.0.dev0"
