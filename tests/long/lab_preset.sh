#!/bin/sh
# lab_preset.sh: a preset of a lab (LAB=ntm-recall) trains, and every figure that has a target
# meets it.  Takes the program as its argument (build/heed otherwise); closes with `N passed, N
# failed`.
set -u
. "$(dirname "$0")/../case.inc"
set -- "${LAB%%-*}" "${LAB#*-}"

run lab "$1" --preset "$2" --model m --threads 1
exits 0
# A figure of results.json: {"name": ..., "value": ..., ["target": ..., "met": ...]}
tr -d '\n' <m/results.json | grep -o '{[^{}]*"met": *[a-z]*[^{}]*}' >figures
[ -s figures ]; verdict $? 'there is no figure with a target'
while read -r figure; do
    case $figure in *'"met": true'*) true ;; *) false ;; esac
    verdict $? "missed: $figure"
done <figures

finish
