"""The demo tokenizer: small, ours, trained on this repository's text; no download, no licence question."""
