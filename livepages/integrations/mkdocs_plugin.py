from livepages.mkdocs_plugin import *  # noqa
