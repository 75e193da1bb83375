"""Models and judgements as other programs take them, one target a file."""
