# ext4 and f2fs on the card: create, fill, delete, trim, unmount, check; contents by hash; discards arrive as the right
# command.
# trial: --profile small.toml --controller cqe --no-delay --in-turn
# trial: --profile small.toml --controller no-cqe --no-delay --in-turn
# trial: --profile small.toml --controller hs200 --no-delay --in-turn
. /guest/library.sh
wait_card
card=/dev/mmcblk0
tracing=/sys/kernel/tracing

# The erase commands that the kernel sends while a command runs, as their arguments: 0x3 is DISCARD, 0x1 is TRIM.
erase_arguments() {
    echo >$tracing/trace
    echo 1 >$tracing/events/mmc/mmc_request_start/enable
    "$@" >/tmp/traced 2>&1 || { cat /tmp/traced; fail "$*"; }
    sync
    echo 0 >$tracing/events/mmc/mmc_request_start/enable
    sed -n 's/.*cmd_opcode=38 cmd_arg=\(0x[0-9a-f]*\) .*/\1/p' $tracing/trace | sort -u | tr '\n' ' ' >/tmp/arguments
}

fill() {
    mkdir "$1"
    number=0
    while [ $number -lt "$2" ]; do
        head -c $(((number * 7919 % 251 + 1) * 4096)) /dev/urandom >"$1/$number" || fail "writing $1/$number"
        number=$((number + 1))
    done
}

for kind in ext4 f2fs; do
    case $kind in
    ext4)
        # Inode tables that are zeroed in the background, with TRIM, could be among the commands looked at.
        mkfs.ext4 -q -F -E lazy_itable_init=0 $card || fail 'mkfs.ext4'
        check='e2fsck -f -n'
        ;;
    f2fs)
        mkfs.f2fs -q -f $card >/tmp/made || { cat /tmp/made; fail 'mkfs.f2fs'; }
        check='fsck.f2fs --dry-run'
        ;;
    esac
    mount -t $kind -o nodiscard $card /mnt || { dmesg | tail; fail "mount $kind"; }
    fill /mnt/kept 40
    fill /mnt/gone 160
    (cd /mnt && find kept gone -type f -exec sha256sum {} +) | sort >/tmp/sums
    sync
    rm -r /mnt/gone
    sync
    erase_arguments fstrim -v /mnt
    cat /tmp/traced
    if [ $kind = ext4 ]; then
        trimmed=$(sed 's/.*(\([0-9]*\) bytes.*/\1/' /tmp/traced)
        [ "$trimmed" -gt 80000000 ] || fail "fstrim of $kind trimmed only $trimmed bytes"
        expect "arguments of erase by fstrim on $kind" "$(cat /tmp/arguments)" '0x3 '
    fi
    # f2fs of this kernel leaves nothing to fstrim; what it does by itself is looked at below.
    umount /mnt || fail "umount $kind"
    $check $card >/tmp/checked 2>&1 || { cat /tmp/checked; fail "$kind is not clean"; }

    # Read again from the card, not from memory.
    echo 3 >/proc/sys/vm/drop_caches
    mount -t $kind -o discard $card /mnt || fail "mount $kind again"
    grep ' kept/' /tmp/sums >/tmp/kept
    (cd /mnt && sha256sum -c -s /tmp/kept) || fail "files on $kind hold something else"
    echo "ok: $kind: $(wc -l </tmp/kept) files hold what was written"
    erase_arguments sh -c 'rm -r /mnt/kept; sync; umount /mnt'
    expect "arguments of erase by -o discard on $kind" "$(cat /tmp/arguments)" '0x3 '
done

# A card that loses its power in an orderly way keeps everything.
mkfs.ext4 -q -F $card || fail 'mkfs.ext4'
mount -t ext4 $card /mnt || fail 'mount'
fill /mnt/kept 30
(cd /mnt && sha256sum kept/*) >/tmp/sums
umount /mnt || fail 'umount'
power_cycle
mount -t ext4 $card /mnt || fail 'mount after a power cycle'
(cd /mnt && sha256sum -c -s /tmp/sums) || fail 'files hold something else after a power cycle'
umount /mnt || fail 'umount'
e2fsck -f -n $card >/dev/null || fail 'ext4 is not clean after a power cycle'
if dmesg | grep -E 'mmc0.*(error|timeout|stuck|[Ff]ail)|register dump|Call Trace|I/O error'; then
    fail 'the kernel met errors'
fi
