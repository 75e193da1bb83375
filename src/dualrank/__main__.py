"""`python -m dualrank` is the command `dualrank`."""

from dualrank.cli.process import run

if __name__ == "__main__":
    run()
