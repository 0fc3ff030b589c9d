"""``python -m depl``, and with it ``accelerate launch -m depl``."""

from depl.cli.app import main

if __name__ == "__main__":
    main()
