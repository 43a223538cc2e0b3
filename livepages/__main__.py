"""``python -m livepages`` is the command ``livepages``."""

from livepages.integrations.cli import main

main()
