# What guest scripts use: `. /guest/library.sh`.

# Says something to the host that is not output, as one line.
tell() {
    echo "$*" >/dev/guest.control
}

# The modules of the card reader.
load_modules() {
    modprobe mmc_block
    modprobe cqhci
    modprobe sdhci-pci
}

# Says what is wrong and ends the script with a failure.
fail() {
    echo "FAILED: $*"
    exit 1
}

# Waits until a block device is there: the kernel finds the card in its own time.
wait_card() {
    tries=0
    while [ ! -b "/dev/${1:-mmcblk0}" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 3000 ] || { dmesg; fail "no /dev/${1:-mmcblk0}"; }
        usleep 10000
    done
}

# Fails unless two texts are the same: expect WHAT FOUND WANTED.
expect() {
    [ "$2" = "$3" ] || fail "$1: found \"$2\", expected \"$3\""
    echo "ok: $1: $2"
}
