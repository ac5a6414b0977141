# Erase in all its kinds, from mmc-utils and from the block layer; and software resets.
# trial: --profile generic-8g --controller cqe --no-delay --in-turn
# trial: --profile generic-8g --controller no-cqe --no-delay --in-turn
. /guest/library.sh
wait_card
card=/dev/mmcblk0
length=1048576
sectors=$((length / 512))
head -c $length /dev/urandom >/tmp/data

fill() {
    dd if=/tmp/data of=$card bs=256k seek="$(($1 * sectors / 512))" oflag=direct conv=notrunc 2>/dev/null || fail "writing MiB $1"
}
content() {
    echo 3 >/proc/sys/vm/drop_caches
    dd if=$card bs=256k count=4 skip="$(($1 * sectors / 512))" iflag=direct 2>/dev/null | md5sum | cut -d ' ' -f 1
}
zeroes=$(head -c $length /dev/zero | md5sum | cut -d ' ' -f 1)
data=$(md5sum </tmp/data | cut -d ' ' -f 1)

# Each on a MiB of its own, with full MiBs around it.
place=8
for kind in legacy discard secure-erase trim secure-trim; do
    fill $((place - 1))
    fill $place
    fill $((place + 1))
    expect "$kind: before" "$(content $place)" "$data"
    first=$((place * sectors))
    last=$((first + sectors - 1))
    case $kind in
    secure-trim)
        mmc erase secure-trim1 $first $last $card || fail "mmc erase secure-trim1"
        mmc erase secure-trim2 $first $last $card || fail "mmc erase secure-trim2"
        ;;
    *) mmc erase $kind $first $last $card || fail "mmc erase $kind" ;;
    esac
    # A card may keep what was discarded, or not; all else is gone.
    found=$(content $place)
    if [ $kind = discard ] && [ "$found" = "$data" ]; then
        echo 'ok: discard: the card keeps it for now'
    else
        expect "$kind: after" "$found" "$zeroes"
    fi
    expect "$kind: before it" "$(content $((place - 1)))" "$data"
    expect "$kind: behind it" "$(content $((place + 1)))" "$data"
    place=$((place + 4))
done

fill 64
blkdiscard -o $((64 * length)) -l $length $card || fail 'blkdiscard'
fill 65
blkdiscard -z -o $((65 * length)) -l $length $card || fail 'blkdiscard -z'
expect 'written with zeroes' "$(content 65)" "$zeroes"
fill 66
if blkdiscard -s -o $((66 * length)) -l $length $card 2>/tmp/error; then
    expect 'discarded for good' "$(content 66)" "$zeroes"
else
    cat /tmp/error
    fail 'blkdiscard -s'
fi
# mmc-utils does not look whether the card refuses.
mmc erase trim 0 $(($(blockdev --getsz $card) + 8)) $card
expect 'MiB 9 after a refused erase of everything and more' "$(content 9)" "$data"

# A reset under the kernel's feet: the card falls out of transfer state, the kernel initialises it again.
mmc softreset $card || fail 'mmc softreset'
expect 'MiB 65 after a reset' "$(content 65)" "$zeroes"
fill 67
expect 'MiB 67 after a reset' "$(content 67)" "$data"
