"""The loop that joins rankers, clicks and propensities."""
