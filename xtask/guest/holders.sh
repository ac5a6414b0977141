# LVM and md above the card, and above a partition of it: every command that overwrites refuses, and the card is as
# before.
# trial: --profile small.toml --controller cqe --no-delay --in-turn
. /guest/library.sh
wait_card
card=/dev/mmcblk0
export DM_DISABLE_UDEV=1
for module in dm-mod md-mod raid1; do
    modprobe $module || fail "modprobe $module"
done

content() {
    dd if=$card bs=1M count=20 iflag=direct 2>/dev/null | md5sum
}

# Every command that overwrites its target is refused for this reason; erase takes no partition.
refuses() {
    destroy="--destroy --yes-i-mean ${1#/dev/}"
    erase="erase $1 discard $destroy"
    [ "$1" = $card ] || erase="bench $1 --suite dd $destroy"
    for command in "bench $1 --suite iozone --rows 64 --size 4MiB $destroy" "probe $1 --write $destroy" "$erase"; do
        /guest/emmclab $command >/tmp/said 2>&1 </dev/null
        status=$?
        [ $status = 4 ] || { cat /tmp/said; fail "emmclab $command: exit code $status, expected 4"; }
        grep -q -F -- "$2" /tmp/said || { cat /tmp/said; fail "emmclab $command does not say \"$2\""; }
    done
    echo "ok: what overwrites $1 is refused: $2"
    expect "the content of the card" "$(content)" "$before"
}

# LVM on the whole card.
lvm pvcreate -q $card >/tmp/lvm 2>&1 && lvm vgcreate -q vg $card >>/tmp/lvm 2>&1 &&
    lvm lvcreate -q -W n -y -l 100%FREE -n data vg >>/tmp/lvm 2>&1 || { cat /tmp/lvm; fail LVM; }
before=$(content)
refuses $card 'is held by dm-0 (vg-data)'
lvm vgchange -q -a n vg >/tmp/lvm 2>&1 || { cat /tmp/lvm; fail vgchange; }

# LVM on a partition: the card and the partition are in use.
printf 'label: dos\nstart=2048, size=16384, type=8e\nstart=18432, size=16384, type=fd\n' | sfdisk -q $card || fail sfdisk
lvm pvcreate -q -y -ff ${card}p1 >/tmp/lvm 2>&1 && lvm vgcreate -q parts ${card}p1 >>/tmp/lvm 2>&1 &&
    lvm lvcreate -q -W n -y -l 100%FREE -n data parts >>/tmp/lvm 2>&1 || { cat /tmp/lvm; fail 'LVM on a partition'; }
before=$(content)
refuses $card 'is held by dm-0 (parts-data)'
lvm vgchange -q -a n parts >/tmp/lvm 2>&1 || { cat /tmp/lvm; fail vgchange; }

# A mirror of md, half of it missing, on the other partition; without mdadm, as the kernel's documentation says.
echo md0 >/sys/module/md_mod/parameters/new_array || fail 'a new array'
md=/sys/block/md0/md
echo none >$md/metadata_version && echo raid1 >$md/level && echo 2 >$md/raid_disks || fail 'a mirror'
cat /sys/class/block/mmcblk0p2/dev >$md/new_dev || fail 'a member'
echo 0 >$md/dev-mmcblk0p2/slot || fail 'its place'
before=$(content)
refuses ${card}p2 'is held by md0'
echo 8192 >$md/dev-mmcblk0p2/size && echo 8192 >$md/component_size && echo active >$md/array_state || fail 'an active array'
[ "$(blockdev --getsz /dev/md0)" = 16384 ] || fail "the array's size"
refuses ${card}p2 'is held by md0'
refuses $card 'is held by md0'
