"""Executable documentation: a page is a program, run in a fresh process, shown and tested as one."""
