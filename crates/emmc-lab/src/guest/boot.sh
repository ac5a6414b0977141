#!/bin/sh
# The first process of a User-Mode Linux: what it runs is in a folder of its host.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t hostfs host /host
ln -s /host/guest /guest
exec /bin/sh /host/init
