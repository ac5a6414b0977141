# mmc_test of the kernel: each of its tests on the card, with its result. It needs a kernel with CONFIG_MMC_TEST, which
# neither Debian's nor the one of `guest build --uml` has (docs/firmware.md).
. /guest/library.sh
wait_card
drivers=/sys/bus/mmc/drivers
[ -d $drivers/mmc_test ] || {
    echo 'the kernel has no mmc_test (docs/firmware.md)'
    exit 77
}
echo mmc0:0001 >$drivers/mmcblk/unbind
echo mmc0:0001 >$drivers/mmc_test/bind || fail 'mmc_test does not take the card'
folder=/sys/kernel/debug/mmc0/mmc0:0001
count=$(wc -l <$folder/testlist)
wrong=0
number=1
while [ $number -lt "$count" ]; do
    dmesg -c >/dev/null
    before=$(cut -d ' ' -f 1 /proc/uptime)
    echo $number >$folder/test
    took=$(echo "$before $(cut -d ' ' -f 1 /proc/uptime)" | awk '{ printf "%.1f", $2 - $1 }')
    result=$(sed -n "s/^Test $number: //p" $folder/test)
    case $result in
    0) said=OK ;;
    2) said='unsupported by the host' ;;
    3) said='unsupported by the card' ;;
    *)
        said="FAILED ($result)"
        wrong=$((wrong + 1))
        dmesg | tail -n 20
        ;;
    esac
    echo "$(sed -n "s/^$number:\t//p" $folder/testlist): $said, $took s" | sed "s/^/$number: /"
    number=$((number + 1))
done
[ $wrong = 0 ] || fail "$wrong tests"
