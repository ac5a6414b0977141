# Writes until the card's power goes, looks at what it holds when power is back, and so on until the host has had enough.
# The first partition is raw; on the second ext4 holds files that a careful program replaces, and what fio writes. Where only
# sectors are to be written, fio writes to the second partition itself.
. /guest/library.sh
wait_card
card=/dev/mmcblk0
raw_sectors=65536

settings=$(ask begin)
set -- $settings
what=$3
if [ "$1" = 0 ]; then
    # A new card.
    printf 'start=8192, size=%s\nstart=%s\n' $raw_sectors $((8192 + raw_sectors)) | sfdisk -q $card || fail 'sfdisk'
    wait_card mmcblk0p2
    [ "$what" = sectors ] || mkfs.ext4 -q -F ${card}p2 || fail 'mkfs.ext4'
    sync
else
    look=yes
fi

while true; do
    wait_card mmcblk0p2
    if [ -n "$look" ]; then
        if [ "$what" = files ]; then
            mount -t ext4 ${card}p2 /mnt || { dmesg | tail -n 20; fail 'ext4 does not mount after a power cut'; }
            tell "record files"
            /guest/disk-writer read-files /mnt >&9 || fail 'read-files'
        fi
        tell "record sectors"
        /guest/disk-writer read-sectors ${card}p1 0 $raw_sectors >&9 || fail 'read-sectors'
        if [ "$what" = files ]; then
            umount /mnt || fail 'umount'
            e2fsck -f -n ${card}p2 >/tmp/checked 2>&1 || { cat /tmp/checked; fail 'ext4 is not clean after a power cut'; }
        fi
        tell "record settled"
    fi
    settings=$(ask next)
    [ "$settings" != done ] || exit 0
    seed=${settings% *}
    number=${settings#* }
    noise=${card}p2
    if [ "$what" = files ]; then
        mount -t ext4 ${card}p2 /mnt || fail 'mount'
        /guest/disk-writer write-files /mnt "$seed" "$number" >&9 2>/dev/null &
        noise=/mnt/noise
    fi
    /guest/disk-writer write-sectors ${card}p1 0 $raw_sectors "$seed" "$number" 4 >&9 2>/dev/null &
    fio --name=noise --filename=$noise --size=16m --rw=randwrite --bs=4k --fsync=16 --ioengine=psync --time_based \
        --runtime=3600 --randseed="$seed" >/dev/null 2>&1 &
    # They all end when the card does not answer any more.
    wait
    [ "$what" = sectors ] || umount -l /mnt 2>/dev/null
    power_reader=$(reader)
    echo "$power_reader" >/sys/bus/pci/drivers/sdhci-pci/unbind
    ask power >/dev/null
    echo "$power_reader" >/sys/bus/pci/drivers/sdhci-pci/bind
    look=yes
done
