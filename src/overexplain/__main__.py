"""`python -m overexplain` is `overexplain`."""

from overexplain.cli.main import main

if __name__ == "__main__":
    main()
