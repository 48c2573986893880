"""Typer commands, one file each: parse, call, print, exit code."""
