# The replay-protected partition: key, counter, authenticated writes and reads.
# trial: --profile small.toml --controller cqe --no-delay --in-turn
# trial: --profile small.toml --controller hs200 --no-delay --in-turn
. /guest/library.sh
wait_card
rpmb=/dev/mmcblk0rpmb
printf AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHH >/tmp/key
printf AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHX >/tmp/other
head -c 256 /dev/urandom >/tmp/block1
head -c 256 /dev/urandom >/tmp/block2

refused 'the counter without a key' mmc rpmb read-counter $rpmb
mmc rpmb write-key $rpmb /tmp/key || fail 'mmc rpmb write-key'
refused 'a second key' mmc rpmb write-key $rpmb /tmp/other
counter() {
    mmc rpmb read-counter $rpmb | sed 's/.*: *//'
}
expect 'the counter' "$(counter)" 0x00000000
mmc rpmb write-block $rpmb 2 /tmp/block1 /tmp/key || fail 'mmc rpmb write-block'
mmc rpmb write-block $rpmb 3 /tmp/block2 /tmp/key || fail 'mmc rpmb write-block'
expect 'the counter' "$(counter)" 0x00000002
mmc rpmb read-block $rpmb 2 2 /tmp/found /tmp/key || fail 'mmc rpmb read-block'
cat /tmp/block1 /tmp/block2 | cmp - /tmp/found || fail 'the blocks hold something else'
refused 'a write with another key' mmc rpmb write-block $rpmb 2 /tmp/block2 /tmp/other
refused 'a read checked with another key' mmc rpmb read-block $rpmb 2 1 /tmp/other-found /tmp/other
refused 'a write past the end' mmc rpmb write-block $rpmb 0x1000 /tmp/block1 /tmp/key
expect 'the counter' "$(counter)" 0x00000002

power_cycle
expect 'the counter after a power cycle' "$(counter)" 0x00000002
refused 'a key after a power cycle' mmc rpmb write-key $rpmb /tmp/other
rm /tmp/found
mmc rpmb read-block $rpmb 2 2 /tmp/found /tmp/key || fail 'mmc rpmb read-block'
cat /tmp/block1 /tmp/block2 | cmp - /tmp/found || fail 'the blocks hold something else after a power cycle'
