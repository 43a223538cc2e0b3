"""Records: the runs of each host as committed text; checks against them, and comparison of hosts."""

from livepages.records.check import check_block, check_blocks, check_page, same_kind
from livepages.records.comparison import Comparison, PageBlock, compare
from livepages.records.differences import differ
from livepages.records.entries import FAILED, NOT_RUN, Entry
from livepages.records.files import write
from livepages.records.model import Host, RecordedOutcome, Seen, entry, newest, short_key
from livepages.records.recording import check_host_name, record, used_files
from livepages.records.store import Records, former_records, records_named

__all__ = [
    "FAILED",
    "NOT_RUN",
    "Comparison",
    "Entry",
    "Host",
    "PageBlock",
    "RecordedOutcome",
    "Records",
    "Seen",
    "check_block",
    "check_blocks",
    "check_host_name",
    "check_page",
    "compare",
    "differ",
    "entry",
    "former_records",
    "newest",
    "record",
    "records_named",
    "same_kind",
    "short_key",
    "used_files",
    "write",
]
