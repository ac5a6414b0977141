#!/bin/sh
# The first process of the guest in User-Mode Linux: mounts, runs /guest/script, leaves its status, powers off.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
mount -t debugfs debugfs /sys/kernel/debug
mount -t tracefs tracefs /sys/kernel/tracing
mount -t hostfs host /host
. /guest/environment
cd /root || exit 1
sh /guest/script </dev/null >>/host/output 2>&1
status=$?
if [ -n "$(ls -A /out)" ]; then
    tar -c -f /host/files.tar -C /out .
fi
sync
echo "$status" >/host/status
poweroff -f
