from livepages.pytest_plugin import *  # noqa
