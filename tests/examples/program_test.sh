#!/bin/bash
# An example program: its own check decides.
exec "$1"
