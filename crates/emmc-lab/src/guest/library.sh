# What guest scripts use: `. /guest/library.sh`.

# Opens the channels to the host: ports by name, or the card's mailbox and serial ports.
open_channels() {
    if [ "$CLOCK" = virtual ]; then
        # Of several cards the first has it.
        export mailbox="/sys/bus/pci/devices/$(reader | head -n 1)/config"
        for port in ttyS1:guest.output ttyS2:guest.files; do
            stty -F "/dev/${port%%:*}" raw -echo 115200
            ln -s "/dev/${port%%:*}" "/dev/${port##*:}"
        done
    else
        for port in /sys/class/virtio-ports/*; do
            ln -s "/dev/${port##*/}" "/dev/$(cat "$port/name")"
        done
        exec 9<>/dev/guest.control
    fi
}

# Gives the host what is in /out.
save_files() {
    tar -c -f /dev/guest.files -C /out .
}

# Says something to the host that is not output, as one line.
tell() {
    if [ "$CLOCK" = virtual ]; then
        # Written to the card reader's configuration space from 0xf00 on, in pieces that fit; time stands still.
        printf '%s' "$*" | fold -b -w 96 | while IFS= read -r tell_part || [ -n "$tell_part" ]; do
            printf '%s' "$tell_part" | dd of="$mailbox" bs=128 seek=30 conv=notrunc status=none
        done
        echo | dd of="$mailbox" bs=128 seek=30 conv=notrunc status=none
    else
        echo "$*" >&9
    fi
}

# Has the host do something and prints its answer; the status is the host's: ask ctl WORDS runs `emmclab sim ctl CARD WORDS`.
ask() {
    tell "ask $*"
    if [ "$CLOCK" = virtual ]; then
        # Read from 0xf80 on, 128 bytes at a time; zeros follow the end.
        ask_bytes=128
        : >/tmp/answer
        while [ "$ask_bytes" = 128 ]; do
            dd if="$mailbox" bs=128 skip=31 count=1 status=none | tr -d '\0' >/tmp/page
            ask_bytes=$(wc -c </tmp/page)
            cat /tmp/page >>/tmp/answer
        done
        {
            read -r ask_status ask_lines
            cat
        } </tmp/answer
        return "$ask_status"
    fi
    read -r ask_status ask_lines <&9
    while [ "$ask_lines" -gt 0 ]; do
        IFS= read -r ask_line <&9
        echo "$ask_line"
        ask_lines=$((ask_lines - 1))
    done
    return "$ask_status"
}

# Has the host check, when the machine is off, that the card's register field has a value: card_has FIELD VALUE.
card_has() {
    tell "card $1 $(($2))"
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
    while [ ! -b "/dev/${1:-mmcblk0}" ] || [ ! -e /sys/kernel/debug/mmc0/mmc0:0001/ext_csd ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 3000 ] || { dmesg | tail -n 40; fail "no /dev/${1:-mmcblk0}"; }
        usleep 10000
    done
}

# Fails unless two texts are the same: expect WHAT FOUND WANTED.
expect() {
    [ "$2" = "$3" ] || fail "$1: found \"$2\", expected \"$3\""
    echo "ok: $1: $2"
}

# Fails unless a command fails: refused WHAT COMMAND...
refused() {
    refused_what=$1
    shift
    if "$@" >/tmp/refused 2>&1; then
        cat /tmp/refused
        fail "$refused_what: not refused"
    fi
    echo "ok: $refused_what: refused: $(tail -n 1 /tmp/refused)"
}

# An attribute of the card in sysfs.
attribute() {
    cat "/sys/block/mmcblk0/device/$1"
}

# A byte of the card's EXT_CSD as the kernel reads it now, as 0x and two digits.
ext_csd_byte() {
    digits=$(cat /sys/kernel/debug/mmc0/mmc0:0001/ext_csd)
    echo "0x$(echo "$digits" | cut -c $(($1 * 2 + 1))-$(($1 * 2 + 2)))"
}

# The card reader's PCI address.
reader() {
    for device in /sys/bus/pci/devices/*; do
        case $(cat "$device/class") in
        0x0805*) echo "${device##*/}" ;;
        esac
    done
}

# Takes the card's power away in an orderly way, and gives it back: afterwards the kernel finds the card again.
power_cycle() {
    power_reader=$(reader)
    echo "$power_reader" >/sys/bus/pci/drivers/sdhci-pci/unbind
    ask ctl cut >/dev/null || fail "the host cannot cut the card's power"
    ask ctl on >/dev/null || fail "the host cannot give the card its power back"
    echo "$power_reader" >/sys/bus/pci/drivers/sdhci-pci/bind
    wait_card
}

# Sets the card's clock: N times slower than the host machine's clock; 0: no delays. On one clock with the guest it has
# its own speed only.
set_dilation() {
    [ "$CLOCK" != virtual ] || return 0
    DILATION=$1
    if [ "$1" = 0 ]; then
        ask ctl speed --delays false >/dev/null || fail 'sim ctl speed'
    else
        ask ctl speed "$1" --delays true >/dev/null || fail 'sim ctl speed'
    fi
}

# Runs fio and says what a request took on the card's clock, in us: fio_us read|write ARGUMENTS. Requests at once share the time.
fio_us() {
    fio_kind=$1
    shift
    fio --name=figure --direct=1 --minimal --terse-version=3 "$@" >/tmp/fio_us || { cat /tmp/fio_us >&2; return 1; }
    # Terse fields: KiB and ms of reads, of writes.
    awk -F ';' -v kind="$fio_kind" -v dilation="$DILATION" -v kib="$(echo "$*" | sed 's/.*--bs=\([0-9]*\)k.*/\1/')" '
        { if (kind == "read") { size = $6; ms = $9 } else { size = $47; ms = $50 } }
        size > 0 { printf "%.0f\n", ms * 1000 / (size / kib) / dilation; found = 1 }
        END { exit !found }' /tmp/fio_us
}

# A number of `emmclab sim ctl CARD state --json`, the first of that name: state_number NAME.
state_number() {
    ask number "$1"
}

# Fails unless an arithmetic comparison holds, as awk has it: holds WHAT COMPARISON.
holds() {
    awk "BEGIN { exit !($2) }" || fail "$1: not $2"
    echo "ok: $1: $2"
}

# Requests of a kind and their time together in us, as the card saw them: account read|write.
account() {
    ask ctl stats --json | awk -v kind="\"$1\":" '
        /"controller":/ { controller = 1 }
        controller && $1 == kind { found = 1 }
        found && $1 == "\"requests\":" { requests = $2 + 0 }
        found && $1 == "\"total_us\":" { printf "%d %.3f\n", requests, $2; exit }'
}
