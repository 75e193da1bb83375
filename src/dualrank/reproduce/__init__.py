"""The paper's experiments, as data about which pieces to combine."""
