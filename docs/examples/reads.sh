# 20 000 direct reads of 4 KiB from the card.
. /guest/library.sh
wait_card
dd if=/dev/mmcblk0 of=/dev/null bs=4k count=20000 iflag=direct
