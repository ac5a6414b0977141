#!/bin/sh
# The first process of the guest: mounts, loads the modules, runs /guest/script, reports its status, powers off.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/shm
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
mount -t debugfs debugfs /sys/kernel/debug
mount -t tracefs tracefs /sys/kernel/tracing

. /guest/environment
. /guest/library.sh
open_channels
tell "boot $(cut -d ' ' -f 1 /proc/uptime)"
load_modules
cd /root || exit 1
# flashbench writes to its standard input.
sh /guest/script 0<>/dev/null >>/dev/guest.output 2>&1
status=$?
if [ -n "$(ls -A /out)" ]; then
    save_files
fi
[ "$CLOCK" = virtual ] || tell "ran $(cut -d ' ' -f 1 /proc/uptime)"
tell "exit $status"
sync
poweroff -f
