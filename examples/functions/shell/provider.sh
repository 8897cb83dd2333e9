#!/bin/sh
# Widgets of example.com as a provider of KubeFoundry: a line of JSON in, a line of JSON out (docs/functions.md).
exec jq --unbuffered --compact-output --from-file "$(dirname "$0")/provider.jq"
