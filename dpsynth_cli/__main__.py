"""`python -m dpsynth_cli` is `dpsynth`."""

from dpsynth_cli.cli.main import run

if __name__ == "__main__":
    run()
