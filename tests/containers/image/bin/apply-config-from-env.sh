#!/bin/sh
# As the official image's: each variable PULSAR_PREFIX_KEY becomes the setting KEY of the file. The last line wins.
env | sed -n 's/^PULSAR_PREFIX_//p' >> "$1"
