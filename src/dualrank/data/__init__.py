"""What comes in: LETOR text, public and generated sets, click logs."""
