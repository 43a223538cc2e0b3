from livepages.cli import *  # noqa
