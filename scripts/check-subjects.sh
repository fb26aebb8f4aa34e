#!/usr/bin/env bash
# Checks the subjects of commits, "area: Imperative sentence" in at most 60 characters: check-subjects.sh [RANGE]
# Without a range, all commits since the rule was introduced. Prints each wrong subject; exit code 1 if there is one.
set -euo pipefail
cd "$(dirname "$0")/.."

areas='acl|aof|bench|cli|cluster|config|core|dashboard|docs|history|json|lists|live-queries|metrics|packaging|persistence'
areas+='|protocol|replication|scripting|sketches|server|storage|tests|tiers|tls|vectors'
# The last commit before the rule.
introduced=37961632
length_max=60

if [ $# -gt 0 ]; then
    range=$1
elif git cat-file -e "$introduced^{commit}" 2>/dev/null; then
    range=$introduced..HEAD
elif [ "$(git rev-parse --is-shallow-repository)" = true ]; then
    echo "shallow clone: checking only the commits that it contains" >&2
    range=HEAD
else
    echo "commit $introduced is missing: clone the repository with its history, or specify a range" >&2
    exit 1
fi

# Endings that show that the first word is not an imperative; imperatives with such endings are listed.
not_imperative='(ed|ing)$'
imperatives='^(Bring|Embed|Exceed|Feed|Need|Proceed|Ring|Seed|Shed|Speed|Spring|String)$'

subjects=$(git log --no-merges --format=%s "$range")
status=0
while IFS= read -r subject; do
    [ -n "$subject" ] || continue
    why=
    verb=$(sed -nE "s/^($areas): ([A-Z][A-Za-z-]*)( .*)?$/\2/p" <<<"$subject")
    if [ -z "$verb" ]; then
        why='is not "area: Sentence" with a known area and a capital letter'
    elif [[ $verb =~ $not_imperative && ! $verb =~ $imperatives ]]; then
        why="does not begin with an imperative: $verb"
    elif [ "${#subject}" -gt "$length_max" ]; then
        why="has ${#subject} characters; the limit is $length_max"
    elif [[ $subject == *. ]]; then
        why='ends with a full stop'
    fi
    if [ -n "$why" ]; then
        echo "commit subject \"$subject\" $why" >&2
        status=1
    fi
done <<<"$subjects"
exit "$status"
