"""Tests of traces and triplets; no database, no services used."""
