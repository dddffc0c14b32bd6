"""One selected call -> one triplet, reward still open. One file per part of the triplet."""
