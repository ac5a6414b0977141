# For scripts that run emmclab in the guest: they have it in place of their line `. /guest/says.sh`.

# Runs it; its exit code is one of the first argument's, or the script ends: emmclab '0 1' ARGUMENTS. What it said is in
# /tmp/said and /tmp/complained.
emmclab() {
    codes=$1
    shift
    /guest/emmclab "$@" >/tmp/said 2>/tmp/complained </dev/null
    status=$?
    case " $codes " in
    *" $status "*) echo "ok: emmclab $*: exit code $status" ;;
    *) cat /tmp/said /tmp/complained; fail "emmclab $*: exit code $status, expected $codes" ;;
    esac
}

says() {
    grep -q -F -- "$1" /tmp/said || { cat /tmp/said /tmp/complained; fail "emmclab does not say \"$1\""; }
    echo "ok: emmclab says \"$1\""
}

complains() {
    grep -q -F -- "$1" /tmp/complained || { cat /tmp/complained; fail "emmclab does not complain of \"$1\""; }
    echo "ok: emmclab complains: $(grep -F -- "$1" /tmp/complained | head -n 1)"
}
