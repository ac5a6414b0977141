# The kernel finds the card, with the speed and the queue of its controller, and reports the card's registers.
# trial: --profile small.toml --controller cqe --no-delay
# trial: --profile small.toml --controller no-cqe --no-delay
# trial: --profile small.toml --controller hs200 --no-delay
# trial: --profile generic-8g@60% --controller cqe --no-delay
. /guest/library.sh
wait_card

message() {
    dmesg | grep -F -q "$1" || { dmesg | grep mmc; fail "the kernel does not say \"$1\""; }
    echo "ok: the kernel says \"$1\""
}
case $CONTROLLER in
cqe)
    message 'Command Queue Engine enabled'
    message 'new HS400 Enhanced strobe MMC card'
    queue=1
    ;;
no-cqe)
    message 'new HS400 Enhanced strobe MMC card'
    queue=0
    ;;
hs200)
    message 'new HS200 MMC card'
    queue=0
    ;;
esac
if [ $queue = 0 ] && dmesg | grep -q 'Command Queue Engine enabled'; then
    fail 'a command queue on a controller without one'
fi
if dmesg | grep -E 'mmc0.*(error|timeout|stuck|[Ff]ail)|register dump|Call Trace'; then
    fail 'the kernel met errors'
fi

for node in mmcblk0 mmcblk0boot0 mmcblk0boot1; do
    [ -b /dev/$node ] || fail "no /dev/$node"
    echo "ok: /dev/$node, $(blockdev --getsize64 /dev/$node) bytes"
done
[ -c /dev/mmcblk0rpmb ] || fail 'no /dev/mmcblk0rpmb'

# Each attribute beside the bytes that the kernel read it from; and the same fields as emmclab shows them afterwards.
byte() {
    ext_csd_byte "$1"
}
word() {
    echo $(($(byte "$1") | $(byte $(($1 + 1))) << 8 | $(byte $(($1 + 2))) << 16 | $(byte $(($1 + 3))) << 24))
}
expect life_time "$(attribute life_time)" "$(byte 268) $(byte 269)"
expect pre_eol_info "$(attribute pre_eol_info)" "$(byte 267)"
expect rev "$(attribute rev)" "0x$(printf %x "$(byte 192)")"
expect cmdq_en "$(attribute cmdq_en)" $queue
expect ffu_capable "$(attribute ffu_capable)" $(($(byte 493) & 1))
expect 'size in sectors' "$(cat /sys/block/mmcblk0/size)" "$(word 212)"
expect 'bytes of boot0' "$(blockdev --getsize64 /dev/mmcblk0boot0)" $(($(byte 226) * 131072))
expect rel_sectors "$(attribute rel_sectors)" "0x$(printf %x "$(byte 222)")"
expect raw_rpmb_size_mult "$(attribute raw_rpmb_size_mult)" "$(printf '%#x' "$(byte 168)")"
# Nothing is enhanced: the kernel says so with all ones, and -EINVAL as a size.
expect enhanced_area_offset "$(attribute enhanced_area_offset)" 18446744073709551594
expect enhanced_area_size "$(attribute enhanced_area_size)" 4294967274
card_has SEC_COUNT "$(word 212)"
card_has DEVICE_LIFE_TIME_EST_TYP_A "$(byte 268)"
card_has DEVICE_LIFE_TIME_EST_TYP_B "$(byte 269)"
card_has PRE_EOL_INFO "$(byte 267)"
card_has CID.PSN "$(attribute serial)"
card_has CID.MID "$(attribute manfid)"
