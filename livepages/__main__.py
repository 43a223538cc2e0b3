"""``python -m livepages`` is the command ``livepages``."""

from livepages.cli import main

main()
