"""`python -m dualrank` is the command `dualrank`."""

from dualrank.cli.app import main

if __name__ == "__main__":
    main()
