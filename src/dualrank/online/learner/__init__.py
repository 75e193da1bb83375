"""The learner: follows closed segments, learns in rounds, and decides which version is live."""
