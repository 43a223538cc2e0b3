from livepages.markdown_extension import *  # noqa
