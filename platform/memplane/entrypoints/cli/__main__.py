"""`python -m memplane.entrypoints.cli`: the command line without its script."""

from memplane.entrypoints.cli.main import main

if __name__ == "__main__":
    main()
