"""Examine a file of answers each time it is saved: python -m examiner FILE."""

from examiner.watch import main

main()
