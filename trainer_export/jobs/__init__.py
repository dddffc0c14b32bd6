"""Export jobs: from a request to files that are there in whole or not at all."""
