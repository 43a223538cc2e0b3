"""What runs inside a page's own process, and what the engine knows of JAX.

Imports no other package of the engine, nor any other library before it is needed: whatever is imported here, every
page finds in its process. ``python -m livepages.worker`` is that process.
"""

from livepages.worker import jaxhost
from livepages.worker.capture import OUTPUT_LIMIT
from livepages.worker.dependencies import content
from livepages.worker.load import IdleClock

__all__ = ["IdleClock", "OUTPUT_LIMIT", "content", "jaxhost"]
