#!/bin/dash
# First process of the guest: puts busybox behind the packages' own programs and goes on as systemd, or in start.sh under
# an init that collects orphans: an ended agent must not stay behind as a zombie.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:/bb
/bin/busybox mkdir -p /bb
/bin/busybox --install -s /bb
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
grep -qw lab.systemd /proc/cmdline && exec /lib/systemd/systemd
echo "::sysinit:/bin/dash /lab/start.sh" >/etc/inittab
exec /bb/init
