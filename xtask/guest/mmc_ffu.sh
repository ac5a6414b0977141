# Firmware update in the field with mmc-utils: the new version runs after a reset; an image with a fault is refused.
# trial: --profile generic-8g --controller cqe --no-delay --in-turn
# trial: --profile generic-8g --controller hs200 --no-delay --in-turn
. /guest/library.sh
wait_card
card=/dev/mmcblk0

# The virtual card's own form: magic, version, sectors, digest of the body; the body is four sectors.
head -c 2048 /dev/urandom >/tmp/body
{
    printf 'emmclab firmware%s\005\000\000\000\000\000\000\000' EMMCLAB2
    sha256sum </tmp/body | cut -d ' ' -f 1 | xxd -r -p
    head -c 448 /dev/zero
    cat /tmp/body
} >/tmp/image
expect 'bytes of the image' "$(wc -c </tmp/image)" 2560
# The body's last byte is made another one, whichever it was.
{
    head -c 2559 /tmp/image
    case $(tail -c 1 /tmp/image | xxd -p) in
    78) printf y ;;
    *) printf x ;;
    esac
} >/tmp/bad
cmp -s /tmp/bad /tmp/image && fail 'the image with a fault is the image'

expect fwrev "$(attribute fwrev | xxd -r -p)" EMMCLAB1
mmc ffu /tmp/bad $card && fail 'an image with a fault is not refused'
expect 'fwrev after a bad image' "$(attribute fwrev | xxd -r -p)" EMMCLAB1
mmc ffu /tmp/image $card || fail 'mmc ffu'
power_cycle
expect 'fwrev after a power cycle' "$(attribute fwrev | xxd -r -p)" EMMCLAB2
head -c 65536 /dev/urandom >/tmp/data
dd if=/tmp/data of=$card bs=64k oflag=direct conv=notrunc 2>/dev/null || fail 'writing with new firmware'
cmp -n 65536 /tmp/data $card || fail 'the card holds something else'
