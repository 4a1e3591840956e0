"""`python -m dpal` is `dpal`."""

from dpal.cli import run

if __name__ == "__main__":
    run()
